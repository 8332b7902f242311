//! The reconciler: which resources there are, when each is looked at, and what runs beside what. What a pass does is
//! in `pass`; nothing here decides anything about a cluster.

mod act;
mod claims;
mod cluster;
mod pace;
mod pass;
mod report;
mod resource;

use std::future::Future;
use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use kube::api::{Api, ListParams, PartialObjectMeta};
use kube::core::DeserializeGuard;
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::events::Reporter;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Client, Resource as _, ResourceExt as _};

pub use pace::Pace;

use crate::api::KafkaFeatures;
use crate::api::conditions::{self, STALLED};
use crate::features::decide::{Recheck, Stall, State};
use crate::kafka::Timeouts;
use pace::Rests;

/// The operator's name, towards the API server and in events.
const NAME: &str = "kafka-features-operator";

/// How the operator runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The one namespace whose resources are looked after; `None`: all.
    pub namespace: Option<String>,
    /// How long resources rest between passes.
    pub pace: Pace,
    /// How long the Kafka client waits.
    pub kafka: Timeouts,
}

/// Why a pass broke off. Whatever the cluster has to do with is no error but a decision.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The resource could not be read.
    #[error("the resource can't be read from the API server: {0}")]
    Read(#[source] kube::Error),
    /// The status could not be written.
    #[error("the status can't be written to the API server: {0}")]
    Write(#[source] kube::Error),
}

/// A resource as the watch gives it: one that can't be read must not stop the others.
type Watched = DeserializeGuard<KafkaFeatures>;

/// What passes share.
struct Context {
    client: Client,
    settings: Settings,
    reporter: Reporter,
    resources: Store<Watched>,
    rests: Rests,
}

/// Looks after all resources until `shutdown` is ready and the passes under way have ended.
pub async fn run(client: Client, settings: Settings, shutdown: impl Future<Output = ()> + Send + 'static) {
    let shutdown = shutdown.boxed().shared();
    tokio::select! {
        () = shutdown.clone() => return,
        () = wait_for_definition(&client, &settings) => {}
    }
    let controller = Controller::new(api::<Watched>(&client, &settings), watcher::Config::default());
    let context = Arc::new(Context {
        client: client.clone(),
        reporter: Reporter { controller: NAME.to_owned(), instance: None },
        resources: controller.store(),
        rests: Rests::new(settings.pace),
        settings: settings.clone(),
    });
    let waking = Arc::clone(&context);
    let touched = api::<PartialObjectMeta<KafkaFeatures>>(&client, &settings);
    controller
        .watches(touched, watcher::Config::default(), move |touched| wake_rivals(&waking, &touched))
        .graceful_shutdown_on(shutdown)
        .run(reconcile, retry, context)
        .for_each(|result| {
            if let Err(controller::Error::QueueError(error)) = result {
                tracing::warn!(%error, "resources can't be watched, trying again");
            }
            std::future::ready(())
        })
        .await;
}

fn api<K>(client: &Client, settings: &Settings) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match &settings.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Waits until the API server knows the resource's kind. The operator and the definition may be installed in any
/// order, and the definition may come by other hands.
async fn wait_for_definition(client: &Client, settings: &Settings) {
    let one = ListParams::default().limit(1);
    while let Err(error) = api::<Watched>(client, settings).list(&one).await {
        tracing::warn!(%error, "KafkaFeatures can't be listed; is the CustomResourceDefinition installed? Trying again");
        tokio::time::sleep(settings.pace.soon).await;
    }
}

/// The resources that wait for the touched one to let go of a feature: whatever happened to it, they look again.
fn wake_rivals(context: &Context, touched: &PartialObjectMeta<KafkaFeatures>) -> Vec<ObjectRef<Watched>> {
    let conflict = conditions::reason(State::Stalled(Stall::Conflict));
    let resources = context.resources.state();
    context.rests.keep(|uid| resources.iter().any(|resource| resource.uid().as_deref() == Some(uid)));
    let rivals = resources.iter().filter(|resource| resource.uid() != touched.uid()).filter(|resource| {
        let status = resource.0.as_ref().ok().and_then(|resource| resource.status.as_ref());
        let conditions = status.into_iter().flat_map(|status| &status.conditions);
        conditions.into_iter().any(|c| c.type_ == STALLED && c.status == "True" && c.reason == conflict)
    });
    rivals
        .map(|rival| {
            context.rests.wake(&rival.uid().unwrap_or_default());
            ObjectRef::from_obj(rival.as_ref())
        })
        .collect()
}

async fn reconcile(watched: Arc<Watched>, context: Arc<Context>) -> Result<Action, Error> {
    let uid = watched.uid().unwrap_or_default();
    if let Some(left) = context.rests.left(&uid, watched.meta().generation) {
        return Ok(Action::requeue(left));
    }
    let namespace = watched.namespace().unwrap_or_default();
    let Some((generation, recheck)) = pass::pass(&context, &namespace, &watched.name_any()).await? else {
        return Ok(Action::await_change());
    };
    Ok(Action::requeue(context.rests.begin(&uid, generation, recheck, Timestamp::now())))
}

/// A pass that broke off is made again after a rest of its own, longer each time.
fn retry(watched: Arc<Watched>, error: &Error, context: Arc<Context>) -> Action {
    let uid = watched.uid().unwrap_or_default();
    let rest = context.rests.begin(&uid, watched.meta().generation, Recheck::Backoff, Timestamp::now());
    tracing::warn!(resource = resource::full_name(watched.as_ref()), %error, ?rest, "a pass broke off, trying again");
    Action::requeue(rest)
}
