//! How a demo runs and ends: whether it succeeds, fails or is interrupted, nothing that it started outlives it.

use std::future::Future;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::block_in_place;

/// Runs a demo; with `--keep`, what it leaves up stays until the process is told to end, after `guide` has told how to look
/// around.
pub(crate) async fn run<Parts: Send + 'static>(
    demo: impl Future<Output = Result<Parts, String>> + Send + 'static,
    guide: impl FnOnce(&Parts) -> String,
) -> ExitCode {
    // the testbed panics when a part fails: of that a person needs the reason, not the place
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let reason = text.or_else(|| payload.downcast_ref::<&str>().copied());
        eprintln!("demo: failed: {}", reason.unwrap_or("a part of the testbed panicked"));
    }));
    let mut demo = tokio::spawn(demo);
    let ended = tokio::select! {
        ended = &mut demo => ended,
        name = interruption() => {
            eprintln!("demo: {name}; taking everything down");
            // the parts end as the task's values are dropped, which is what is waited for
            demo.abort();
            demo.await
        }
    };
    match ended {
        Ok(Ok(parts)) => {
            if std::env::args().any(|arg| arg == "--keep") {
                println!("{}", guide(&parts));
                interruption().await;
            }
            println!("demo: done; taking everything down");
            block_in_place(|| drop(parts));
            ExitCode::SUCCESS
        }
        Ok(Err(reason)) => {
            eprintln!("demo: failed: {reason}");
            ExitCode::FAILURE
        }
        // interrupted or panicked: told above
        Err(_) => ExitCode::FAILURE,
    }
}

/// Waits for a signal that asks for the end, and names it.
async fn interruption() -> &'static str {
    let of = async |kind| match signal(kind) {
        Ok(mut signals) => signals.recv().await.unwrap_or_default(),
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = of(SignalKind::interrupt()) => "interrupted",
        () = of(SignalKind::terminate()) => "terminated",
        () = of(SignalKind::hangup()) => "hung up",
    }
}

/// Calls what takes its time, and then lets an interruption take effect.
pub(crate) async fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let done = block_in_place(work);
    tokio::task::yield_now().await;
    done
}
