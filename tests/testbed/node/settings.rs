//! Configuration files of the node's daemons.

use std::path::Path;

use super::{ADDRESS, NAME};

pub(super) const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

/// containerd's, with `runc` as the only runtime.
pub(super) fn containerd(folder: &Path, debian: &Path) -> String {
    let (folder, debian) = (folder.display(), debian.display());
    format!(
        r#"version = 2
root = "{folder}/containerd"
state = "{folder}/run"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{debian}/usr/lib/cni"
    conf_dir = "{folder}/network"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{debian}/usr/sbin/runc"
"#
    )
}

/// The pods' network: a bridge inside the node's namespace.
pub(super) fn pod_network(folder: &Path) -> String {
    let plugin = serde_json::json!({
        "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
        "ipam": {
            "type": "host-local", "dataDir": folder.join("addresses"),
            "ranges": [[{ "subnet": super::POD_RANGE }]], "routes": [{ "dst": "0.0.0.0/0" }],
        },
    });
    serde_json::json!({ "cniVersion": "1.0.0", "name": "pods", "plugins": [plugin] }).to_string()
}

pub(super) fn kubelet(folder: &Path, keys: &Path) -> String {
    let (folder, keys) = (folder.display(), keys.display());
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {ADDRESS}
port: 10250
healthzBindAddress: 127.0.0.1
tlsCertFile: {keys}/kubelet-server.crt
tlsPrivateKeyFile: {keys}/kubelet-server.key
authentication:
  anonymous: {{enabled: false}}
  webhook: {{enabled: true}}
  x509: {{clientCAFile: {keys}/authority.crt}}
authorization: {{mode: Webhook}}
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /{cgroup}
cgroupsPerQOS: true
enforceNodeAllocatable: [pods]
oomScoreAdj: 0
failSwapOn: false
maxOpenFiles: 20000
containerRuntimeEndpoint: unix://{folder}/containerd.sock
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
resolvConf: {folder}/resolv.conf
evictionHard: {{memory.available: 200Mi, nodefs.available: 2%, imagefs.available: 2%, nodefs.inodesFree: 1%}}
imageGCHighThresholdPercent: 99
imageGCLowThresholdPercent: 98
podLogsDir: {folder}/pod-logs
",
        cgroup = super::CGROUP
    )
}

pub(super) fn proxy(keys: &Path) -> String {
    format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: {ADDRESS}
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
clientConnection: {{kubeconfig: {}/kube-proxy.kubeconfig}}
clusterCIDR: {pods}
hostnameOverride: {NAME}
mode: nftables
conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
",
        keys.display(),
        pods = super::POD_RANGE
    )
}
