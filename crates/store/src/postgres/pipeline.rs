//! Statements that were sent and whose answers nobody waits for yet.
//!
//! The server answers in the order in which it was asked, so only the oldest answer can come next.

use super::error::refused;
use crate::StoreError;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio_postgres::Error;

type Answer = Pin<Box<dyn Future<Output = Result<u64, Error>>>>;

#[derive(Default)]
pub(super) struct Pipeline {
    waiting: RefCell<VecDeque<Answer>>,
    /// What went wrong first; whatever came after it went wrong because of it.
    failure: RefCell<Option<StoreError>>,
}

impl Pipeline {
    /// Sends what the future sends when it is first looked at.
    pub(super) fn push(&self, answer: impl Future<Output = Result<u64, Error>> + 'static) {
        let mut answer: Answer = Box::pin(answer);
        match answer
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(answered) => self.note(answered),
            Poll::Pending => self.waiting.borrow_mut().push_back(answer),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Waits for something that was asked behind all that was sent.
    pub(super) async fn wait_for<T>(&self, last: impl Future<Output = T>) -> T {
        let mut last = pin!(last);
        poll_fn(|context| {
            // Looked at first, because it is sent when it is first looked at.
            let answered = last.as_mut().poll(context);
            self.take_in(context);
            answered
        })
        .await
    }

    /// Waits until no more than so many answers are outstanding.
    pub(super) async fn settle(&self, left: usize) {
        poll_fn(|context| {
            self.take_in(context);
            if self.len() <= left {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Takes in the answers that are there.
    fn take_in(&self, context: &mut Context<'_>) {
        let mut waiting = self.waiting.borrow_mut();
        while let Some(oldest) = waiting.front_mut() {
            let Poll::Ready(answered) = oldest.as_mut().poll(context) else {
                return;
            };
            waiting.pop_front();
            self.note(answered);
        }
    }

    fn note(&self, answered: Result<u64, Error>) {
        if let Err(error) = answered {
            self.failure
                .borrow_mut()
                .get_or_insert_with(|| refused(error));
        }
    }

    /// What went wrong first since the last time, if anything did.
    pub(super) fn take_failure(&self) -> Option<StoreError> {
        self.failure.borrow_mut().take()
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.waiting.borrow_mut().clear();
        self.failure.borrow_mut().take();
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pipeline")
            .field("waiting", &self.len())
            .field("failure", &self.failure)
            .finish()
    }
}
