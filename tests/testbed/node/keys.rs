//! The cluster's authority, certificates and kubeconfigs.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

use super::{ADDRESS, NAME, SERVER};

/// Writes keys and certificates into a folder.
pub(super) struct Keys {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Keys {
    /// Makes all that the node's daemons and its tests need.
    pub(super) fn write(folder: &Path) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "testbed");
        let write = |name: &str, text: String| std::fs::write(folder.join(name), text).expect("a file");
        write("authority.crt", params.self_signed(&key).expect("a certificate").pem());
        write("authority.key", key.serialize_pem());
        let accounts = KeyPair::generate().expect("a key");
        write("accounts.key", accounts.serialize_pem());
        write("accounts.pub", accounts.public_key_pem());
        let keys = Self { folder: folder.to_owned(), issuer: Issuer::new(params, key) };

        let mut names = vec![ADDRESS, "127.0.0.1", "10.96.0.1", "localhost", "kubernetes"];
        names.extend(["kubernetes.default", "kubernetes.default.svc"]);
        names.push("kubernetes.default.svc.cluster.local");
        keys.certificate("kube-apiserver", "", "kube-apiserver", &names);
        keys.certificate("apiserver-kubelet-client", "system:masters", "apiserver-kubelet-client", &[]);
        let node = format!("system:node:{NAME}");
        keys.certificate("kubelet-server", "system:nodes", &node, &[NAME, ADDRESS]);
        keys.kubeconfig("kubelet", "system:nodes", &node);
        keys.kubeconfig("admin", "system:masters", "admin");
        for component in ["kube-controller-manager", "kube-scheduler", "kube-proxy"] {
            keys.kubeconfig(component, "", &format!("system:{component}"));
        }
    }

    fn certificate(&self, file: &str, organization: &str, user: &str, names: &[&str]) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let usage = match names.is_empty() {
            true => ExtendedKeyUsagePurpose::ClientAuth,
            false => ExtendedKeyUsagePurpose::ServerAuth,
        };
        let mut params = CertificateParams::new(names).expect("parameters");
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        if !organization.is_empty() {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let at = |ending: &str| self.folder.join(format!("{file}.{ending}"));
        std::fs::write(at("crt"), certificate.pem()).expect("a file");
        std::fs::write(at("key"), key.serialize_pem()).expect("a file");
    }

    fn kubeconfig(&self, file: &str, organization: &str, user: &str) {
        self.certificate(file, organization, user, &[]);
        let user = format!(
            "client-certificate: {folder}/{file}.crt, client-key: {folder}/{file}.key",
            folder = self.folder.display()
        );
        std::fs::write(self.folder.join(format!("{file}.kubeconfig")), kubeconfig(&self.folder, &user))
            .expect("a file");
    }
}

/// The text of a kubeconfig for a user, such as `token: …`.
pub(super) fn kubeconfig(keys: &Path, user: &str) -> String {
    let authority = keys.join("authority.crt");
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: node\n\
         clusters: [{{name: node, cluster: {{server: \"{SERVER}\", certificate-authority: {}}}}}]\n\
         users: [{{name: node, user: {{{user}}}}}]\n\
         contexts: [{{name: node, context: {{cluster: node, user: node}}}}]\n",
        authority.display()
    )
}
