//! Which accepted changes does no status tell of yet, since the write that was to tell of them failed? The pass that
//! can write again tells of them, under their own time. Kept in memory only, and never taken for what a cluster has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::runtime::events::Event;

use crate::api::{Change, HISTORY, KafkaFeaturesStatus};

/// What one resource is still to be told.
#[derive(Clone, Default)]
pub(super) struct Changes {
    /// Newest first, as in a status.
    pub(super) history: Vec<Change>,
    /// Oldest first.
    pub(super) events: Vec<Arc<Event>>,
}

impl Changes {
    /// The status with these changes in it. A write whose answer got lost may have told of them all the same.
    pub(super) fn onto(&self, mut status: KafkaFeaturesStatus) -> KafkaFeaturesStatus {
        // a status has whole seconds
        let key = |c: &Change| (c.time.0.as_second(), c.feature.clone(), c.from, c.to);
        let untold =
            self.history.iter().filter(|change| !status.history.iter().any(|h| key(h) == key(change)));
        let history = untold.chain(&status.history).take(HISTORY).cloned().collect();
        status.history = history;
        status
    }

    /// Adds a change that was accepted just now: the status that is to tell of it, how many entries of its history are
    /// new, and its events.
    pub(super) fn add(&mut self, status: &KafkaFeaturesStatus, new: usize, events: Vec<Event>) {
        let new = status.history.iter().take(new).cloned();
        self.history = new.chain(self.history.drain(..)).take(HISTORY).collect();
        self.events.extend(events.into_iter().map(Arc::new));
        let surplus = self.events.len().saturating_sub(HISTORY);
        self.events.drain(..surplus);
    }
}

/// What all resources are still to be told, by uid.
#[derive(Default)]
pub(super) struct Untold(Mutex<HashMap<String, Changes>>);

impl Untold {
    pub(super) fn of(&self, uid: &str) -> Changes {
        self.lock().get(uid).cloned().unwrap_or_default()
    }

    /// Remembers what is to be told, before it is tried.
    pub(super) fn remember(&self, uid: &str, changes: Changes) {
        self.lock().insert(uid.to_owned(), changes);
    }

    /// Forgets what was told.
    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Forgets resources that are gone.
    pub(super) fn keep(&self, exists: impl Fn(&str) -> bool) {
        self.lock().retain(|uid, _| exists(uid));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Changes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::runtime::events::EventType;

    use super::*;

    fn change(milliseconds: i64, to: i32) -> Change {
        let time = Time(Timestamp::from_millisecond(milliseconds).unwrap());
        Change { time, feature: "group.version".into(), from: to - 1, to }
    }

    fn status(history: &[Change]) -> KafkaFeaturesStatus {
        KafkaFeaturesStatus { history: history.to_vec(), ..KafkaFeaturesStatus::default() }
    }

    fn event(note: &str) -> Event {
        let (reason, action) = ("LevelsChanged".to_owned(), "UpdateFeatures".to_owned());
        Event { type_: EventType::Normal, reason, note: Some(note.to_owned()), action, secondary: None }
    }

    #[test]
    fn what_a_status_has_is_not_told_again_and_the_rest_comes_first() {
        let mut untold = Changes::default();
        untold.add(&status(&[change(2_700, 2), change(1_000, 1)]), 1, vec![event("1 -> 2")]);
        untold.add(
            &status(&[change(3_700, 3), change(2_700, 2), change(1_000, 1)]),
            1,
            vec![event("2 -> 3")],
        );
        assert_eq!(untold.history, [change(3_700, 3), change(2_700, 2)]);
        let notes: Vec<&str> = untold.events.iter().filter_map(|event| event.note.as_deref()).collect();
        assert_eq!(notes, ["1 -> 2", "2 -> 3"]);
        let all = [change(3_700, 3), change(2_700, 2), change(1_000, 1)];
        assert_eq!(untold.onto(status(&[change(1_000, 1)])).history, all);
        // the first of the two writes came through, and its answer did not
        let all = [change(3_700, 3), change(2_000, 2), change(1_000, 1)];
        assert_eq!(untold.onto(status(&[change(2_000, 2), change(1_000, 1)])).history, all);
    }

    #[test]
    fn no_more_is_kept_than_a_status_holds() {
        let mut untold = Changes::default();
        for level in 1..=15 {
            untold.add(&status(&[change(1_000, level)]), 1, vec![event(&level.to_string())]);
        }
        assert_eq!((untold.history.len(), untold.events.len()), (HISTORY, HISTORY));
        assert_eq!((untold.history[0].to, untold.events[0].note.as_deref()), (15, Some("6")));
        assert_eq!(untold.onto(status(&[change(0, 1)])).history.len(), HISTORY);
    }

    #[test]
    fn each_resource_has_its_own_until_it_is_told_or_gone() {
        let untold = Untold::default();
        let changes = Changes { history: vec![change(0, 1)], events: Vec::new() };
        for uid in ["a", "b", "c"] {
            untold.remember(uid, changes.clone());
        }
        untold.forget("a");
        untold.keep(|uid| uid != "b");
        assert_eq!(["a", "b", "c"].map(|uid| untold.of(uid).history.len()), [0, 0, 1]);
    }
}
