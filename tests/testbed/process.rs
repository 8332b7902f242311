//! Child processes that end with this one, however it ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// Becomes the command, unless the process that wanted it has ended before `setpriv` could ask to be told of that.
const UNLESS_ORPHANED: &str = r#"[ "$PPID" = "$0" ] && exec "$@""#;

/// Starts a command that the kernel kills when this process ends, be it by a signal: `setpriv` asks for that. The
/// kernel means the *thread* that started the child, hence one thread that starts them all and never ends.
pub fn spawn(program: impl AsRef<Path>, configure: impl FnOnce(&mut Command)) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (orders, queue) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in queue {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "sh", "-c", UNLESS_ORPHANED]);
    command.arg(std::process::id().to_string()).arg(program.as_ref()).process_group(0);
    configure(&mut command);
    let (answer, result) = mpsc::channel();
    spawner
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send((command, answer))
        .expect("the spawner lives");
    result.recv().expect("the spawner answers")
}

/// A child process with its output in a log file.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pub name: String,
    pub log: PathBuf,
}

impl Process {
    pub fn start(
        name: &str,
        program: impl AsRef<Path>,
        log: PathBuf,
        configure: impl FnOnce(&mut Command),
    ) -> Self {
        let file: File = OpenOptions::new().create(true).append(true).open(&log).expect("a log file");
        let child = spawn(&program, |command| {
            command.stdin(Stdio::null());
            command.stdout(file.try_clone().expect("a file")).stderr(file);
            configure(command);
        });
        let child =
            child.unwrap_or_else(|e| panic!("{name}: can't start {}: {e}", program.as_ref().display()));
        Self { child, name: name.to_owned(), log }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        let _ = kill_process(pid, signal);
    }

    /// Waits for its end; `None` after the time-out.
    pub fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => return Some(status),
                None if begun.elapsed() > timeout => return None,
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Asks it to end, and ends it if it doesn't.
    pub fn stop(&mut self) {
        if self.runs() {
            self.signal(Signal::TERM);
        }
        if self.wait(Duration::from_secs(20)).is_none() {
            self.kill();
        }
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The last lines of its output.
    pub fn tail(&self, lines: usize) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// Waits until `ready`, and fails with the log when the process ends before, or when it takes too long.
    pub fn wait_until(&mut self, what: &str, timeout: Duration, mut ready: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !ready(self) {
            let ended = !self.runs();
            if ended || begun.elapsed() > timeout {
                let why = if ended { "ended" } else { "took too long" };
                panic!("{} {why} before it was {what}; its last lines:\n{}", self.name, self.tail(40));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- last lines of {}:\n{}", self.name, self.tail(25));
        }
    }
}
