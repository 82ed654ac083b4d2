//! Moving the write-ahead log into the file, beside the writer.
//!
//! SQLite lets the writer do it when the log has grown long; all callers then wait for the disk. A
//! thread of its own does it here while the writer goes on. A log begins anew only when nothing is
//! left in it, so now and then the writer moves the little itself that it appended in the meantime.

use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Rows after which the log is moved: about 20 MB of it.
const ROWS: usize = 25_000;
/// How often it is moved beside the writer before the writer moves the rest. A log that begins anew
/// soon stays small, and writing over it costs less than making it longer.
const TIMES: u32 = 2;

/// The writer's side.
#[derive(Debug)]
pub(super) struct Checkpoints {
    asks: SyncSender<()>,
    has_ended: Receiver<()>,
    is_done: Arc<AtomicBool>,
    rows: usize,
    times: u32,
}

/// The side of the thread that moves.
#[derive(Debug)]
pub(super) struct Mover {
    asked: Receiver<()>,
    /// Dropped when it has ended.
    _ends: SyncSender<()>,
    is_done: Arc<AtomicBool>,
}

pub(super) fn pair() -> (Checkpoints, Mover) {
    let (asks, asked) = sync_channel(1);
    let (ends, has_ended) = sync_channel(0);
    let is_done = Arc::new(AtomicBool::new(false));
    let checkpoints = Checkpoints {
        asks,
        has_ended,
        is_done: Arc::clone(&is_done),
        rows: 0,
        times: 0,
    };
    let mover = Mover {
        asked,
        _ends: ends,
        is_done,
    };
    (checkpoints, mover)
}

impl Mover {
    /// Moves whenever it is asked to, until the writer is gone.
    pub(super) fn run(self, connection: Connection) {
        while self.asked.recv().is_ok() {
            if move_log(&connection) {
                self.is_done.store(true, Ordering::Release);
            }
        }
        drop(connection);
    }
}

impl Checkpoints {
    /// Waits until the thread that moves has closed its connection: the log is taken away by
    /// whoever closes the file last, and where two close it at once neither is the last.
    pub(super) fn finish(self) {
        drop(self.asks);
        let _ = self.has_ended.recv();
    }

    /// To be called after each transaction.
    pub(super) fn committed(&mut self, connection: &Connection, rows: usize) {
        if self.is_done.swap(false, Ordering::Acquire) {
            self.times += 1;
            if self.times >= TIMES {
                self.times = 0;
                move_log(connection);
            }
        }
        self.rows += rows;
        if self.rows < ROWS {
            return;
        }
        match self.asks.try_send(()) {
            // Asked already, or nobody is there to do it: SQLite's own bound remains.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => self.rows = 0,
        }
    }
}

/// Moves what nobody is reading. A failure does no harm: the log stays valid, and whatever ails the
/// file will fail a commit as well.
fn move_log(connection: &Connection) -> bool {
    let moved = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    if let Err(error) = &moved {
        tracing::debug!(%error, "the write-ahead log could not be moved");
    }
    moved.is_ok()
}
