//! The certificates that the operator makes itself, in a Secret that all replicas share, and the `caBundle` of the webhook's
//! configuration. A new authority is trusted, beside the old one, long before anything that it signs is served.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use time::OffsetDateTime;

use super::certificates::{Current, Lifetimes, Pair, make_authority, make_serving};
use super::configuration::NAME;

const SERVING: (&str, &str, &str) = ("tls.crt", "tls.key", "tls.renew");
const AUTHORITY: (&str, &str, &str) = ("ca.crt", "ca.key", "ca.renew");
/// The certificate of the authority before.
const BEFORE: &str = "ca-before.crt";

/// How long an answer of the API server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the Secret holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    authority: Pair,
    serving: Pair,
    before: Option<String>,
}

impl Kept {
    fn read(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let text = |name: &str| String::from_utf8(data.get(name)?.0.clone()).ok();
        let pair = |(certificate, key, renew): (&str, &str, &str)| {
            Some(Pair {
                certificate: text(certificate)?,
                key: text(key)?,
                renew_after: text(renew)?.trim().parse().ok()?,
            })
        };
        Some(Self { authority: pair(AUTHORITY)?, serving: pair(SERVING)?, before: text(BEFORE) })
    }

    fn data(&self) -> BTreeMap<String, ByteString> {
        let mut data = BTreeMap::new();
        let mut put =
            |name: &str, text: &str| data.insert(name.to_owned(), ByteString(text.as_bytes().to_vec()));
        for (pair, names) in [(&self.authority, AUTHORITY), (&self.serving, SERVING)] {
            put(names.0, &pair.certificate);
            put(names.1, &pair.key);
            put(names.2, &pair.renew_after.to_string());
        }
        if let Some(before) = &self.before {
            put(BEFORE, before);
        }
        data
    }

    /// What clients have to trust.
    fn bundle(&self) -> String {
        format!("{}{}", self.authority.certificate, self.before.as_deref().unwrap_or_default())
    }

    /// What takes its place by now, if anything does. A new authority signs only the next serving certificate.
    fn renewed(
        &self,
        names: &[String],
        lifetimes: Lifetimes,
        now: i64,
    ) -> Result<Option<Self>, rcgen::Error> {
        if now >= self.authority.renew_after {
            let before = Some(self.authority.certificate.clone());
            return Ok(Some(Self {
                authority: make_authority(lifetimes.authority)?,
                before,
                ..self.clone()
            }));
        }
        if now >= self.serving.renew_after {
            let serving = make_serving(&self.authority, names, lifetimes.serving)?;
            return Ok(Some(Self { serving, ..self.clone() }));
        }
        Ok(None)
    }
}

/// Keeps the Secret, the configuration and what is served as they should be.
pub(super) struct Keeper {
    secrets: Api<Secret>,
    configurations: Api<MutatingWebhookConfiguration>,
    name: String,
    names: Vec<String>,
    lifetimes: Lifetimes,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn in_time<T>(answer: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Failure> {
    Ok(tokio::time::timeout(PATIENCE, answer)
        .await
        .map_err(|_| "the API server did not answer in time")??)
}

impl Keeper {
    pub(super) fn new(
        client: Client,
        namespace: &str,
        name: &str,
        names: Vec<String>,
        lifetimes: Lifetimes,
    ) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            configurations: Api::all(client),
            name: name.to_owned(),
            names,
            lifetimes,
        }
    }

    /// Goes on for ever; what fails is told of, and what is served goes on being served.
    pub(super) async fn keep(&self, current: &Current) {
        let pause = (self.lifetimes.serving / 30).clamp(Duration::from_millis(100), Duration::from_secs(30));
        let (mut served, mut told) = (None, String::new());
        loop {
            let failure = match self.look_after(current, &mut served).await {
                Ok(()) => String::new(),
                Err(error) => error.to_string(),
            };
            if failure != told && !failure.is_empty() {
                tracing::warn!(error = %failure, secret = self.name, "the webhook's certificates could not be looked after");
            }
            told = failure;
            tokio::time::sleep(pause).await;
        }
    }

    async fn look_after(&self, current: &Current, served: &mut Option<Pair>) -> Result<(), Failure> {
        let kept = self.kept().await?;
        // who asks must trust it before it is served
        self.trust(&kept.bundle()).await?;
        if served.as_ref() != Some(&kept.serving) {
            current.set(kept.serving.certificate.as_bytes(), kept.serving.key.as_bytes())?;
            tracing::info!(secret = self.name, "the webhook's certificate was taken up");
            *served = Some(kept.serving);
        }
        Ok(())
    }

    /// What the Secret holds, made or renewed where that is due.
    async fn kept(&self) -> Result<Kept, Failure> {
        let secret = in_time(self.secrets.get_opt(&self.name)).await?;
        let now = OffsetDateTime::now_utc().unix_timestamp();
        let kept = match secret.as_ref().and_then(Kept::read) {
            Some(kept) => match kept.renewed(&self.names, self.lifetimes, now)? {
                None => return Ok(kept),
                Some(renewed) => renewed,
            },
            None => {
                let authority = make_authority(self.lifetimes.authority)?;
                let serving = make_serving(&authority, &self.names, self.lifetimes.serving)?;
                Kept { authority, serving, before: None }
            }
        };
        let params = PostParams::default();
        let written = match secret {
            // only over what was read: another replica may have been quicker
            Some(mut secret) => {
                secret.data = Some(kept.data());
                in_time(self.secrets.replace(&self.name, &params, &secret)).await
            }
            None => {
                let secret = Secret {
                    metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                    type_: Some("kubernetes.io/tls".to_owned()),
                    data: Some(kept.data()),
                    ..Secret::default()
                };
                in_time(self.secrets.create(&params, &secret)).await
            }
        };
        match written {
            Ok(_) => Ok(kept),
            Err(error) => {
                // what another replica has written is as good
                let now = in_time(self.secrets.get_opt(&self.name)).await?;
                now.as_ref().and_then(Kept::read).ok_or(error)
            }
        }
    }

    /// Has the API server trust these authorities.
    async fn trust(&self, bundle: &str) -> Result<(), Failure> {
        let Some(configuration) = in_time(self.configurations.get_opt(NAME)).await? else {
            return Err(
                format!("there is no MutatingWebhookConfiguration {NAME}: apply deploy/webhook").into()
            );
        };
        let webhooks = configuration.webhooks.unwrap_or_default();
        let mut patch = Vec::new();
        for (at, webhook) in webhooks.iter().enumerate() {
            let trusted = webhook.client_config.ca_bundle.as_ref().map(|bundle| bundle.0.as_slice());
            if trusted != Some(bundle.as_bytes()) {
                let value = ByteString(bundle.as_bytes().to_vec());
                let path = |field: &str| format!("/webhooks/{at}/{field}");
                // the order may have changed in between
                patch.push(json!({ "op": "test", "path": path("name"), "value": webhook.name }));
                patch.push(json!({ "op": "add", "path": path("clientConfig/caBundle"), "value": value }));
            }
        }
        if !patch.is_empty() {
            let patch = Patch::Json::<()>(serde_json::from_value(json!(patch))?);
            in_time(self.configurations.patch(NAME, &PatchParams::default(), &patch)).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_authority_is_trusted_before_it_signs_and_the_old_one_as_long_as_it_is_needed() {
        let lifetimes = Lifetimes::of(Duration::from_secs(60));
        let names = ["a".to_owned()];
        let authority = make_authority(lifetimes.authority).unwrap();
        let serving = make_serving(&authority, &names, lifetimes.serving).unwrap();
        let kept = Kept { authority, serving, before: None };
        assert_eq!(kept.renewed(&names, lifetimes, kept.serving.renew_after - 1).unwrap(), None);
        let renewed = kept.renewed(&names, lifetimes, kept.serving.renew_after).unwrap().unwrap();
        assert_eq!((&renewed.authority, renewed.serving != kept.serving), (&kept.authority, true));
        let changed = kept.renewed(&names, lifetimes, kept.authority.renew_after).unwrap().unwrap();
        assert_eq!((&changed.serving, changed.authority != kept.authority), (&kept.serving, true));
        assert!(changed.bundle().contains(&kept.authority.certificate));
        assert!(changed.bundle().starts_with(&changed.authority.certificate));
        let secret = Secret { data: Some(changed.data()), ..Secret::default() };
        assert_eq!(Kept::read(&secret), Some(changed));
        assert_eq!(Kept::read(&Secret::default()), None);
    }
}
