//! Who wrote when, as CSV with `user,unix_seconds`: what `kittiwake simulate` reads.
//!
//! Every post that anybody could see at some time has a line, reposts too, whether or not it was
//! deleted later; the oldest comes first. A day is made at a time and sent before the next, so that
//! a trace of any length takes no more memory than one day of its users.

use std::convert::Infallible;
use std::io::Write as _;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use http_body::Frame;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::world::World;
use crate::world::time::day_of;

/// The posts of a day are put in order in memory, so there must not be too many of them.
pub(crate) const USERS_MAX: u64 = 1_000_000;
const HEADER: &[u8] = b"user,unix_seconds\n";
const PIECE_BYTES: usize = 1 << 16;
/// Pieces that wait for a slow reader.
const PIECES_MAX: usize = 2;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) world: Arc<World>,
    /// Of which time, in microseconds. It may lie ahead: what will be written is known, too.
    pub(crate) span_us: Range<i64>,
    /// Whose posts, by the numbers of their homes; everybody's if it is not said.
    pub(crate) asked_homes: Option<Vec<bool>>,
}

impl Trace {
    /// The answer, which is made while it is sent.
    pub(crate) fn respond(self) -> Response {
        let (sender, pieces) = channel(PIECES_MAX);
        // Ends by itself when the reader has gone.
        tokio::task::spawn_blocking(move || self.send(&sender));
        let mut response = Response::new(Body::new(TraceBody { pieces }));
        let csv = HeaderValue::from_static("text/csv; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, csv);
        response
    }

    /// Makes all lines, or as many as somebody wants to have.
    fn send(&self, sender: &Sender<Bytes>) -> Option<()> {
        let mut text = HEADER.to_vec();
        for day in self.days() {
            for (at_us, user) in self.posts(day) {
                let user = self.world.account_uri(user);
                // Posts have a whole number of milliseconds.
                let (seconds, milliseconds) = (at_us / 1_000_000, at_us / 1_000 % 1_000);
                writeln!(text, "{user},{seconds}.{milliseconds:03}").ok()?;
                if text.len() >= PIECE_BYTES {
                    sender
                        .blocking_send(std::mem::take(&mut text).into())
                        .ok()?;
                }
            }
            // Long stretches without a line must not keep a reader waiting who has gone.
            if sender.is_closed() {
                return None;
            }
        }
        sender.blocking_send(text.into()).ok()
    }

    fn days(&self) -> Range<i64> {
        let first = day_of(self.span_us.start).max(self.world.history_start_day());
        let last = day_of(self.span_us.end.min(World::LAST_US));
        first..last + 1
    }

    /// Who wrote when on a day, in order.
    fn posts(&self, day: i64) -> Vec<(i64, u64)> {
        let mut written: Vec<(i64, u64)> = (0..self.world.users())
            .filter(|&user| self.is_asked(user))
            .flat_map(|user| self.world.posts(user, day))
            .filter(|post| self.span_us.contains(&post.draft.at_us))
            .filter(|post| self.world.is_ever_shown(post))
            .map(|post| (post.draft.at_us, post.user()))
            .collect();
        written.sort_unstable();
        written
    }

    fn is_asked(&self, user: u64) -> bool {
        let asked = self.asked_homes.as_ref();
        asked
            .and_then(|asked| asked.get(self.world.home(user)))
            .is_none_or(|&is_asked| is_asked)
    }
}

struct TraceBody {
    pieces: Receiver<Bytes>,
}

impl HttpBody for TraceBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.poll_recv(context);
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}
