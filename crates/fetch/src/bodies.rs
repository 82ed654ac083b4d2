//! One byte budget for all bodies in flight.
//!
//! The size of a body is not known before it has been read: an answer may be chunked, and a
//! compressed one unfolds to any size. If every body took from one pool as it grows, many bodies
//! could each hold a part and all wait for more, for ever. So the budget is two pools:
//!
//! - *slots*: before a request is sent it takes a slot of [`SLOT_BYTES`], enough for nearly every
//!   page. It holds nothing of the budget while it waits.
//! - *large*: a body that outgrows its slot takes, at once, all it may ever need: the length the
//!   server declared, else the cap. It waits while holding its slot only, and once it has its
//!   share it never waits for memory again.
//!
//! Thus those who hold a large share always finish (or time out), those who wait for one follow
//! in order of arrival, and those who wait for a slot hold nothing: there is no circle. The large
//! pool always has room for at least one body of the largest size. When a body is complete, what
//! it did not use goes back, and the rest when the [`BodyPermit`] is dropped.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// A page of forty posts is about 120 KB.
const SLOT_BYTES: usize = 256 * 1024;
/// One permit of a semaphore stands for so many bytes, so that four bytes can count them.
const UNIT_BYTES: usize = 1024;

#[derive(Debug)]
pub(crate) struct BodyBudget {
    slots: Arc<Semaphore>,
    large: Arc<Semaphore>,
    slots_units: usize,
    large_units: usize,
    slot_bytes: usize,
    body_bytes_max: usize,
}

impl BodyBudget {
    /// `total_bytes` is at least `body_bytes_max`.
    pub(crate) fn new(total_bytes: usize, body_bytes_max: usize) -> Self {
        let slot_bytes = SLOT_BYTES.min(body_bytes_max);
        let total_units = units(total_bytes);
        let beyond_slot_units = units(body_bytes_max) - units(slot_bytes);
        let large_units = if beyond_slot_units == 0 {
            0
        } else {
            // Half for each pool, as long as both can serve at least one body.
            let most_units = total_units - units(slot_bytes);
            (total_units / 2).clamp(beyond_slot_units, most_units)
        };
        let slots_units = total_units - large_units;
        Self {
            slots: Arc::new(Semaphore::new(slots_units)),
            large: Arc::new(Semaphore::new(large_units)),
            slots_units,
            large_units,
            slot_bytes,
            body_bytes_max,
        }
    }

    /// Waits for a slot, in order of arrival.
    pub(crate) async fn reserve(&self) -> Result<Reservation, AcquireError> {
        let slot = acquire(&self.slots, units(self.slot_bytes)).await?;
        Ok(Reservation {
            permit: BodyPermit { slot, large: None },
            bytes: self.slot_bytes,
            body_bytes_max: self.body_bytes_max,
            large: Arc::clone(&self.large),
        })
    }

    /// What is reserved now: bodies being read and bodies whose permit is still held.
    pub(crate) fn reserved_bytes(&self) -> usize {
        let free_units = self.slots.available_permits() + self.large.available_permits();
        (self.slots_units + self.large_units - free_units) * UNIT_BYTES
    }
}

/// What one body may grow to while it is being read.
#[derive(Debug)]
pub(crate) struct Reservation {
    permit: BodyPermit,
    bytes: usize,
    body_bytes_max: usize,
    large: Arc<Semaphore>,
}

impl Reservation {
    /// How long the body may get without asking again.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes room for a body that outgrew its slot: for the declared length where there is one,
    /// else for the cap. Does nothing the second time. Safe to cancel.
    pub(crate) async fn grow(&mut self, declared_bytes: Option<usize>) -> Result<(), AcquireError> {
        let wanted_bytes = declared_bytes
            .unwrap_or(self.body_bytes_max)
            .min(self.body_bytes_max);
        if self.permit.large.is_some() || wanted_bytes <= self.bytes {
            return Ok(());
        }
        let more_units = units(wanted_bytes) - units(self.bytes);
        self.permit.large = Some(acquire(&self.large, more_units).await?);
        self.bytes = wanted_bytes;
        Ok(())
    }

    /// The body is complete: gives back what it did not use.
    pub(crate) fn settle(self, body_bytes: usize) -> BodyPermit {
        let mut permit = self.permit;
        let slot_units = permit.slot.num_permits().min(units(body_bytes));
        shrink(&mut permit.slot, slot_units);
        if let Some(large) = &mut permit.large {
            shrink(large, units(body_bytes) - slot_units);
        }
        permit
    }
}

/// A body's share of the byte budget, given back when dropped.
#[derive(Debug)]
pub struct BodyPermit {
    slot: OwnedSemaphorePermit,
    large: Option<OwnedSemaphorePermit>,
}

impl BodyPermit {
    /// The size of the share: the body's length, rounded up.
    pub fn reserved_bytes(&self) -> usize {
        let large_units = self
            .large
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        (self.slot.num_permits() + large_units) * UNIT_BYTES
    }
}

async fn acquire(
    pool: &Arc<Semaphore>,
    units: usize,
) -> Result<OwnedSemaphorePermit, AcquireError> {
    // The whole budget was checked to fit in 32 bits of units.
    let units = u32::try_from(units).unwrap_or(u32::MAX);
    Arc::clone(pool).acquire_many_owned(units).await
}

fn shrink(permit: &mut OwnedSemaphorePermit, keep_units: usize) {
    let surplus_units = permit.num_permits().saturating_sub(keep_units);
    drop(permit.split(surplus_units));
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT_BYTES)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MIB: usize = 1024 * 1024;

    #[tokio::test]
    async fn a_settled_body_keeps_its_own_length_and_gives_the_rest_back() {
        let budget = BodyBudget::new(4 * MIB, MIB);
        let mut reservation = budget.reserve().await.unwrap();
        assert_eq!(budget.reserved_bytes(), SLOT_BYTES);
        reservation.grow(None).await.unwrap();
        assert_eq!((reservation.bytes(), budget.reserved_bytes()), (MIB, MIB));
        let permit = reservation.settle(300 * 1024 + 1);
        assert_eq!(permit.reserved_bytes(), 301 * 1024);
        assert_eq!(budget.reserved_bytes(), 301 * 1024);
        drop(permit);
        assert_eq!(budget.reserved_bytes(), 0);
    }

    #[tokio::test]
    async fn an_empty_body_holds_nothing() {
        let budget = BodyBudget::new(MIB, MIB);
        let permit = budget.reserve().await.unwrap().settle(0);
        assert_eq!((permit.reserved_bytes(), budget.reserved_bytes()), (0, 0));
    }

    #[tokio::test]
    async fn a_declared_length_takes_no_more_than_it_says() {
        let budget = BodyBudget::new(64 * MIB, 16 * MIB);
        let mut reservation = budget.reserve().await.unwrap();
        reservation.grow(Some(MIB)).await.unwrap();
        assert_eq!(budget.reserved_bytes(), MIB);
        let mut greedy = budget.reserve().await.unwrap();
        greedy.grow(Some(usize::MAX)).await.unwrap();
        assert_eq!(greedy.bytes(), 16 * MIB);
    }

    #[test]
    fn the_pools_make_up_the_budget_and_serve_the_largest_body() {
        let sizes = [
            1,
            1023,
            1025,
            SLOT_BYTES - 1,
            SLOT_BYTES,
            SLOT_BYTES + 1,
            MIB,
            16 * MIB,
        ];
        for body_bytes_max in sizes {
            for factor in [1, 2, 3, 10] {
                let total_bytes = body_bytes_max * factor;
                let budget = BodyBudget::new(total_bytes, body_bytes_max);
                assert_eq!(budget.slots_units + budget.large_units, units(total_bytes));
                assert!(budget.slots_units >= units(budget.slot_bytes));
                let beyond_slot_units = units(body_bytes_max) - units(budget.slot_bytes);
                assert!(budget.large_units >= beyond_slot_units);
            }
        }
    }

    /// The smallest budget there can be, and everybody wants the most: all get through, and never
    /// do all together hold more than the budget.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn many_growing_bodies_never_wait_for_each_other_in_a_circle() {
        let budget = Arc::new(BodyBudget::new(MIB + 3 * SLOT_BYTES, MIB));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..200_usize {
            let budget = Arc::clone(&budget);
            tasks.spawn(async move {
                let mut reservation = budget.reserve().await.unwrap();
                tokio::task::yield_now().await;
                if number % 3 != 0 {
                    reservation
                        .grow((number % 3 == 1).then_some(MIB / 2))
                        .await
                        .unwrap();
                }
                assert!(budget.reserved_bytes() <= MIB + 3 * SLOT_BYTES);
                tokio::task::yield_now().await;
                let body_bytes = reservation.bytes() - number;
                let permit = reservation.settle(body_bytes);
                tokio::task::yield_now().await;
                drop(permit);
            });
        }
        let all = async { while tasks.join_next().await.transpose().unwrap().is_some() {} };
        tokio::time::timeout(Duration::from_secs(20), all)
            .await
            .expect("a circle of waits");
        assert_eq!(budget.reserved_bytes(), 0);
    }

    #[tokio::test]
    async fn a_cancelled_wait_gives_everything_back() {
        let budget = BodyBudget::new(MIB, MIB);
        let mut first = budget.reserve().await.unwrap();
        first.grow(None).await.unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(10), budget.reserve()).await;
        assert!(waited.is_err());
        drop(first);
        assert_eq!(budget.reserved_bytes(), 0);
    }
}
