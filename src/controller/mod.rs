//! The reconciler: which resources there are, when each is looked at, and what runs beside what. What a pass does is
//! in `pass`; nothing here decides anything about a cluster.

mod act;
mod claims;
mod cluster;
mod format;
mod lease;
mod pace;
mod pass;
mod report;
mod resource;
mod untold;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Shared};
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::core::DeserializeGuard;
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::events::Reporter;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Resource as _, ResourceExt as _};

pub use lease::{Lost, Terms};
pub use pace::Pace;

use crate::api::KafkaFeatures;
use crate::api::conditions::{self, STALLED};
use crate::api::pods::CLUSTER_LABEL;
use crate::features::decide::{Recheck, Stall, State};
use crate::kafka::Timeouts;
use crate::telemetry::{Phase, Telemetry};
use lease::{Lease, Tenure};
use pace::Rests;
use untold::Untold;

/// The operator's name, towards the API server and in events.
const NAME: &str = "kafka-features-operator";

/// How the operator runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The one namespace whose resources are looked after; `None`: all.
    pub namespace: Option<String>,
    /// The lease that decides which replica acts; `None` where this is the only one.
    pub lease: Option<Terms>,
    /// How long resources rest between passes.
    pub pace: Pace,
    /// How long the Kafka client waits.
    pub kafka: Timeouts,
}

/// Why a pass broke off. Whatever the cluster has to do with is no error but a decision.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The API server refused something, or could not be asked.
    #[error("the API server could not {doing}: {source}")]
    Api {
        doing: &'static str,
        #[source]
        source: kube::Error,
    },
    /// The API server fell silent.
    #[error("the API server did not answer within {} s, asked to {doing}", API_PATIENCE.as_secs())]
    Silent { doing: &'static str },
    /// Another replica may be acting by now.
    #[error("the lease ran out in the middle of the pass, or was about to; nothing more was sent")]
    LeaseRanOut,
    /// The watch has ended.
    #[error("the operator is shutting down")]
    ShuttingDown,
}

impl Error {
    /// What the API server refuses to let the operator do, and why: until somebody changes that, it will go on refusing.
    fn refusal(&self) -> Option<String> {
        let Self::Api { doing, source: kube::Error::Api(status) } = self else { return None };
        // what was changed in between, or came too often, may well be taken next time
        let lasting = (400..500).contains(&status.code) && ![401, 408, 409, 429].contains(&status.code);
        lasting.then(|| format!("the API server does not let the operator {doing}: {}", status.message))
    }
}

/// How long the API server may take for one answer: a connection that has gone dead must not hold a resource for ever.
const API_PATIENCE: Duration = Duration::from_secs(30);

/// Waits for an answer of the API server.
async fn in_time<T>(
    doing: &'static str,
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(API_PATIENCE, answer).await {
        Ok(answer) => answer.map_err(|source| Error::Api { doing, source }),
        Err(_) => Err(Error::Silent { doing }),
    }
}

/// A resource as the watch gives it: one that can't be read must not stop the others.
type Watched = DeserializeGuard<KafkaFeatures>;

/// What passes share.
struct Context {
    client: Client,
    settings: Settings,
    reporter: Reporter,
    resources: Store<Watched>,
    /// Ready once the store holds every resource; false where it never will. Shared, since the store itself wakes only
    /// one of several that wait for it.
    complete: Shared<BoxFuture<'static, bool>>,
    rests: Rests,
    untold: Untold,
    pods_seen: format::wake::Seen,
    tenure: Arc<Tenure>,
    telemetry: Arc<Telemetry>,
}

/// Looks after all resources until `shutdown` is ready and the passes under way have ended. With a lease, only for as
/// long as this replica holds it, and not before.
///
/// # Errors
/// If the lease is lost. Everything has been broken off then, and nothing more is sent.
pub async fn run(
    client: Client,
    settings: Settings,
    telemetry: Arc<Telemetry>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Lost> {
    let shutdown: Shutdown = shutdown.boxed().shared();
    tokio::select! {
        () = shutdown.clone() => return Ok(()),
        () = wait_for_definition(&client, &settings, &telemetry) => {}
    }
    let Some(terms) = settings.lease.clone() else {
        look_after(client, settings, telemetry, Tenure::unlimited(), shutdown).await;
        return Ok(());
    };
    let mut lease = Lease::new(client.clone(), terms);
    tokio::select! {
        () = shutdown.clone() => return Ok(()),
        () = lease.take(&telemetry) => {}
    }
    let acting = look_after(client, settings, Arc::clone(&telemetry), lease.tenure(), shutdown);
    let ended = tokio::select! {
        // the loss of the lease comes first: what is dropped here is not polled again
        biased;
        lost = lease.keep() => Err(lost),
        () = acting => Ok(()),
    };
    telemetry.metrics.show_lease(false);
    if ended.is_ok() {
        lease.release().await;
    }
    ended
}

type Shutdown = Shared<BoxFuture<'static, ()>>;

async fn look_after(
    client: Client,
    settings: Settings,
    telemetry: Arc<Telemetry>,
    tenure: Arc<Tenure>,
    shutdown: Shutdown,
) {
    telemetry.enter(Phase::Acting);
    let (resources, writer) = reflector::store();
    let complete = {
        let resources = resources.clone();
        async move { resources.wait_until_ready().await.is_ok() }.boxed().shared()
    };
    let context = Arc::new(Context {
        complete,
        client: client.clone(),
        reporter: Reporter { controller: NAME.to_owned(), instance: None },
        resources,
        rests: Rests::new(settings.pace),
        untold: Untold::default(),
        pods_seen: format::wake::Seen::default(),
        settings: settings.clone(),
        tenure,
        telemetry,
    });
    // A watch of our own beside the controller's: it tells of resources that go, too, and only after the store that
    // claims are read from knows it, so that nobody is woken to find things as they were.
    let waking = Arc::clone(&context);
    let touches = watcher(api(&client, &settings), watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .touched_objects()
        .filter_map(move |touched| {
            let woken = touched.is_ok_and(|touched| wake_rivals(&waking, &touched));
            std::future::ready(woken.then_some(()))
        });
    let tending = Arc::clone(&context);
    Controller::new(api(&client, &settings), watcher::Config::default())
        .reconcile_all_on(touches)
        .watches(pods(&client, &settings), watcher::Config::default().labels(CLUSTER_LABEL), move |pod| {
            wake_by_pod(&tending, &pod)
        })
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

fn api(client: &Client, settings: &Settings) -> Api<Watched> {
    match &settings.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

fn pods(client: &Client, settings: &Settings) -> Api<Pod> {
    match &settings.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// The resource that a pod is labelled for, where the pod has changed in what matters; its rest ends.
fn wake_by_pod(context: &Context, pod: &Pod) -> Option<ObjectRef<Watched>> {
    let (name, namespace) = (pod.labels().get(CLUSTER_LABEL)?, pod.namespace()?);
    if !context.pods_seen.changed(pod) {
        return None;
    }
    let reference = ObjectRef::new(name).within(&namespace);
    let resource = context.resources.get(&reference)?;
    context.rests.wake(&resource.uid()?);
    Some(reference)
}

/// Waits until the API server knows the resource's kind. The operator and the definition may be installed in any
/// order, and the definition may come by other hands.
async fn wait_for_definition(client: &Client, settings: &Settings, telemetry: &Telemetry) {
    let one = ListParams::default().limit(1);
    while let Err(error) = in_time("list KafkaFeatures", api(client, settings).list(&one)).await {
        let what = match &error {
            Error::Api { source: kube::Error::Api(status), .. } if status.code == 404 => {
                "the CustomResourceDefinition kafkafeatures.kafkafeatures.dev; apply crds/".to_owned()
            }
            error => error.to_string(),
        };
        let phase = Phase::WaitingFor(what);
        if telemetry.enter(phase.clone()) {
            tracing::warn!("{phase}");
        }
        tokio::time::sleep(settings.pace.soon).await;
    }
}

/// Ends the rests of resources that may be waiting for the touched one to let go of a feature, and says whether there
/// are any.
fn wake_rivals(context: &Context, touched: &Watched) -> bool {
    let resources = context.resources.state();
    let exists = |uid: &str| resources.iter().any(|resource| resource.uid().as_deref() == Some(uid));
    context.rests.keep(exists);
    context.untold.keep(exists);
    context.telemetry.metrics.keep(exists);
    let mut woken = false;
    for rival in resources.iter().filter(|rival| rival.uid() != touched.uid() && is_in_conflict(rival)) {
        context.rests.wake(&rival.uid().unwrap_or_default());
        woken = true;
    }
    woken
}

fn is_in_conflict(resource: &Watched) -> bool {
    let status = resource.0.as_ref().ok().and_then(|resource| resource.status.as_ref());
    let reason = conditions::reason(State::Stalled(Stall::Conflict));
    status.is_some_and(|status| status.conditions.iter().any(|c| c.type_ == STALLED && c.reason == reason))
}

async fn reconcile(watched: Arc<Watched>, context: Arc<Context>) -> Result<Action, Error> {
    let uid = watched.uid().unwrap_or_default();
    if let Some(left) = context.rests.left(&uid, watched.meta().generation) {
        return Ok(Action::requeue(left));
    }
    if !context.complete.clone().await {
        return Err(Error::ShuttingDown);
    }
    let namespace = watched.namespace().unwrap_or_default();
    let under_way = context.telemetry.metrics.begin_pass();
    let Some(passed) = pass::pass(&context, &namespace, &watched.name_any()).await? else {
        under_way.end("Gone");
        return Ok(Action::await_change());
    };
    under_way.end(passed.reason);
    context.telemetry.metrics.place(&uid, passed.reason);
    Ok(Action::requeue(context.rests.begin(&uid, passed.generation, passed.recheck, Timestamp::now())))
}

/// A pass that broke off is made again after a rest of its own, longer each time.
fn retry(watched: Arc<Watched>, error: &Error, context: Arc<Context>) -> Action {
    let uid = watched.uid().unwrap_or_default();
    let rest = context.rests.begin(&uid, watched.meta().generation, Recheck::Backoff, Timestamp::now());
    tracing::warn!(resource = resource::full_name(watched.as_ref()), %error, ?rest, "a pass broke off, trying again");
    Action::requeue(rest)
}
