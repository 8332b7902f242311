//! The identity record in its `ConfigMap`. It has no owner, so that it outlives the resource, and is written only over what
//! was read.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};

use crate::api::pods::{IDENTITY_CLUSTER_ID, identity_name};
use crate::controller::{Error, NAME, in_time};
use crate::grants::{Failure, Record};

/// The entry with the record.
const RECORD: &str = "record.json";

/// The record's place.
pub(super) struct Store {
    api: Api<ConfigMap>,
    name: String,
}

/// The record as it was read.
pub(super) struct Stored {
    map: Option<ConfigMap>,
    record: Result<Option<Record>, Failure>,
}

impl Stored {
    /// The record; `None`: there is none yet.
    pub(super) fn record(&self) -> Result<Option<&Record>, Failure> {
        self.record.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }
}

impl Store {
    pub(super) fn new(client: Client, namespace: &str, resource: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), name: identity_name(resource) }
    }

    pub(super) async fn read(&self) -> Result<Stored, Error> {
        let map = in_time("read the identity record", self.api.get_opt(&self.name)).await?;
        let record = map.as_ref().map(|map| self.parse(map)).transpose();
        Ok(Stored { map, record })
    }

    fn parse(&self, map: &ConfigMap) -> Result<Record, Failure> {
        let entry = |key: &str| map.data.as_ref().and_then(|data| data.get(key));
        let wrong = |why: String| Failure {
            reason: "IdentityRecordUnreadable".to_owned(),
            message: format!(
                "the ConfigMap {}, which says who the cluster is and what was formatted, can't be read ({why}): nothing is \
                 formatted until its entries {IDENTITY_CLUSTER_ID} and {RECORD} are as the operator wrote them",
                self.name
            ),
        };
        let text = entry(RECORD).ok_or_else(|| wrong(format!("it has no entry {RECORD}")))?;
        let record: Record =
            serde_json::from_str(text).map_err(|error| wrong(format!("{RECORD}: {error}")))?;
        // pods are given the one, and the operator goes by the other
        match entry(IDENTITY_CLUSTER_ID) {
            Some(id) if *id == record.cluster_id => Ok(record),
            Some(id) => Err(wrong(format!(
                "{IDENTITY_CLUSTER_ID} is {id:?}, and {RECORD} says {:?}",
                record.cluster_id
            ))),
            None => Err(wrong(format!("it has no entry {IDENTITY_CLUSTER_ID}"))),
        }
    }

    /// Writes the record, if nobody has changed what was read.
    pub(super) async fn write(&self, over: &Stored, record: &Record) -> Result<Stored, Error> {
        let doing =
            if over.map.is_some() { "update the identity record" } else { "create the identity record" };
        let text = serde_json::to_string_pretty(record)
            .map_err(|error| Error::Api { doing, source: kube::Error::SerdeError(error) })?;
        let mut map = over.map.clone().unwrap_or_default();
        let data = map.data.get_or_insert_default();
        data.insert(IDENTITY_CLUSTER_ID.to_owned(), record.cluster_id.clone());
        data.insert(RECORD.to_owned(), text);
        let params = PostParams { field_manager: Some(NAME.to_owned()), ..PostParams::default() };
        let map = if over.map.is_some() {
            in_time(doing, self.api.replace(&self.name, &params, &map)).await?
        } else {
            let managed = ("app.kubernetes.io/managed-by".to_owned(), NAME.to_owned());
            map.metadata = ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(BTreeMap::from([managed])),
                ..ObjectMeta::default()
            };
            in_time(doing, self.api.create(&params, &map)).await?
        };
        Ok(Stored { map: Some(map), record: Ok(Some(record.clone())) })
    }
}
