//! Ports on loopback that no other test takes: a lock file a port, held as long as the lease lives. They lie below the
//! range that the kernel gives to outgoing connections.

use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::OnceLock;

const FIRST: u16 = 20_000;
const LAST: u16 = 31_999;

/// A port that is this process's own while the lease lives.
#[derive(Debug)]
pub struct Port {
    pub number: u16,
    _lock: File,
}

impl Port {
    pub fn lease() -> Self {
        static LOCKS: OnceLock<PathBuf> = OnceLock::new();
        let locks = LOCKS.get_or_init(|| super::parts::shared("ports"));
        loop {
            let number = rand::random_range(FIRST..=LAST);
            let lock = File::create(locks.join(number.to_string())).expect("a lock file");
            if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Self { number, _lock: lock };
            }
        }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}
