//! A listener that stands for all private addresses. Nobody may ever call it; whoever does is noted.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Calls whose first line is kept.
const KEPT_MAX: usize = 100;
const LINE_BYTES_MAX: usize = 300;
const READ_WAIT: Duration = Duration::from_secs(2);

/// What came in.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Dialled {
    pub(crate) dialled: u64,
    /// The first lines of the first calls.
    pub(crate) lines: Vec<String>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Canary {
    pub(crate) address: SocketAddr,
    dialled: Arc<Mutex<Dialled>>,
    task: JoinHandle<()>,
}

impl Canary {
    pub(crate) async fn listen() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let dialled = Arc::<Mutex<Dialled>>::default();
        let noted = Arc::clone(&dialled);
        let task = tokio::spawn(async move {
            // Whatever goes wrong with one connection, the next one counts, too.
            loop {
                if let Ok((socket, _)) = listener.accept().await {
                    note(&noted, |dialled| dialled.dialled += 1);
                    tokio::spawn(read_line(socket, Arc::clone(&noted)));
                } else {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        });
        Ok(Self {
            address,
            dialled,
            task,
        })
    }

    pub(crate) fn dialled(&self) -> Dialled {
        let dialled = self.dialled.lock().unwrap_or_else(PoisonError::into_inner);
        dialled.clone()
    }

    pub(crate) fn stop(&self) {
        self.task.abort();
    }
}

fn note(dialled: &Mutex<Dialled>, change: impl FnOnce(&mut Dialled)) {
    change(&mut dialled.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Notes what a caller wanted, and closes the connection.
async fn read_line(mut socket: TcpStream, dialled: Arc<Mutex<Dialled>>) {
    let mut bytes = [0; LINE_BYTES_MAX];
    let read = tokio::time::timeout(READ_WAIT, socket.read(&mut bytes)).await;
    let length = read.ok().and_then(Result::ok).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..length]);
    let line = text.lines().next().unwrap_or_default().to_owned();
    note(&dialled, |dialled| {
        if dialled.lines.len() < KEPT_MAX {
            dialled.lines.push(line);
        }
    });
}
