//! In which order steps go, and in which requests.

use super::{Batching, Request, Step};
use crate::features::catalog::Catalog;

/// Puts the steps in an order in which nothing finalized ever lacks what it depends on, `kraft.version` as late as
/// that allows, and divides them into requests.
///
/// Kafka checks a request's dependencies against the levels as they will be after the whole of it, so steps of any
/// direction can share one; only `kraft.version` is always alone, since Kafka applies it even when the request that
/// holds it is refused for another feature.
pub(super) fn arrange(catalog: &Catalog, mut steps: Vec<Step>, batching: Batching) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    let mut open = false;
    while !steps.is_empty() {
        let step = steps.remove(next(catalog, &steps));
        let alone = batching == Batching::Ordered || step.feature.is_kraft_version();
        match requests.last_mut() {
            Some(request) if open && !alone => request.steps.push(step),
            _ => requests.push(Request { steps: vec![step] }),
        }
        open = !alone;
    }
    requests
}

/// The first step that has to wait for no other. Where dependencies run in a circle, which no real catalog has, the
/// first of all.
fn next(catalog: &Catalog, steps: &[Step]) -> usize {
    let free = |step: &Step| !steps.iter().any(|other| goes_before(catalog, other, step));
    let first = |wanted: bool| steps.iter().position(|s| s.feature.is_kraft_version() != wanted && free(s));
    first(true).or_else(|| first(false)).unwrap_or_default()
}

/// Whether `a` must be done before `b`: `b`'s new level needs `a`'s new level, or `a`'s old level needs `b`'s old one.
fn goes_before(catalog: &Catalog, a: &Step, b: &Step) -> bool {
    let crosses = |step: &Step, needed| (step.from < needed) != (step.to < needed);
    let lifts =
        catalog.needs(&b.feature, b.to).iter().any(|(f, l)| *f == a.feature && a.from < *l && crosses(a, *l));
    let frees =
        catalog.needs(&a.feature, a.from).iter().any(|(f, l)| *f == b.feature && b.to < *l && crosses(b, *l));
    lifts || frees
}
