//! How `kafka-storage format` compares with Kafka's own tool, both run as people run them, in one go on one machine: wall
//! time and peak memory, and their ratios. `make bench`.

#![allow(clippy::expect_used)]

#[path = "../testbed/mod.rs"]
mod testbed;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testbed::parts;

const KAFKA: &str = "4.4.0";
const OURS: usize = 200;
const KAFKAS: usize = 10;

/// The median of the times that runs took.
fn time(runs: usize, tool: impl Fn() -> Command) -> Duration {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let folder = folder();
            let begun = Instant::now();
            let status = format(tool(), &folder).wait().expect("it ends");
            let took = begun.elapsed();
            assert!(status.success());
            took
        })
        .collect();
    times.sort_unstable();
    times[runs / 2]
}

/// The most memory that a run has in its address space at a time, in KiB, as the kernel tells it until the run ends.
fn memory(tool: Command) -> u64 {
    let folder = folder();
    let mut run = format(tool, &folder);
    let mut most = 0;
    while run.try_wait().expect("it can be asked").is_none() {
        most = most.max(peak(run.id()));
        sleep(Duration::from_millis(1));
    }
    most
}

/// The peak of a process and of those that it started.
fn peak(process: u32) -> u64 {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let status = text(&format!("/proc/{process}/status"));
    let own = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let own = own.and_then(|value| value.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0);
    let traced = status
        .lines()
        .find_map(|line| line.strip_prefix("Name:"))
        .is_some_and(|name| name.trim() == "strace");
    let children = text(&format!("/proc/{process}/task/{process}/children"));
    let below = children.split_whitespace().filter_map(|id| id.parse().ok()).map(peak).max().unwrap_or(0);
    // strace's own memory is not what is measured
    if traced { below } else { below.max(own) }
}

fn main() {
    let jars = format!("{}/*", parts::kafka(KAFKA).display());
    let ours = || Command::new(env!("CARGO_BIN_EXE_kafka-storage"));
    let kafkas = || {
        let mut java = Command::new("java");
        // the settings of Kafka's own start script
        java.args(["-Xmx256M", "-server", "-XX:+UseG1GC", "-cp", &jars, "kafka.tools.StorageTool"]);
        java
    };
    let held = || {
        // ours is gone before anybody could look: strace holds it where it ends
        let mut strace = Command::new("strace");
        strace.args([
            "-o",
            "/dev/null",
            "-e",
            "trace=exit_group",
            "-e",
            "inject=exit_group:delay_enter=200000",
        ]);
        strace.arg(env!("CARGO_BIN_EXE_kafka-storage"));
        strace
    };
    let (our_time, our_memory) = (time(OURS, ours), memory(held()));
    let (kafkas_time, kafkas_memory) = (time(KAFKAS, kafkas), memory(kafkas()));
    println!("format of one standalone node, {OURS} runs of ours and {KAFKAS} of Kafka {KAFKA}'s");
    println!("  ours:    {our_time:>9.2?} and {our_memory:>6} KiB");
    println!("  Kafka's: {kafkas_time:>9.2?} and {kafkas_memory:>6} KiB");
    let times = kafkas_time.as_secs_f64() / our_time.as_secs_f64();
    println!(
        "  ours takes 1/{times:.0} of the time and 1/{} of the memory",
        kafkas_memory / our_memory.max(1)
    );
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("server.properties"), properties(folder.path())).expect("a file");
    folder
}

fn format(mut tool: Command, folder: &TempDir) -> Child {
    tool.args(["format", "--standalone", "--cluster-id", "5L6g3nShT-eMCtK--X86sw", "--config"]);
    tool.arg(folder.path().join("server.properties"));
    tool.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the tool starts")
}

fn properties(folder: &Path) -> String {
    format!(
        "process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n\
         controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=localhost:9093\nlog.dirs={}/data\n",
        folder.display()
    )
}
