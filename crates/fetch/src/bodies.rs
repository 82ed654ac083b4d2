//! One byte budget for all bodies in flight.
//!
//! The size of a body is not known before it has been read: an answer may be chunked, and a
//! compressed one unfolds to any size. If every body took from one pool as it grows, many bodies
//! could each hold a part and all wait for more, for ever. So the budget is a row of pools:
//!
//! - *slots*, the first: before a request is sent it takes a slot of [`SLOT_BYTES`], enough for
//!   nearly every page. It holds nothing of the budget while it waits.
//! - the others are for larger and larger bodies: one that outgrows its share takes, at once, all
//!   that the next pool may give it: eight times as much as it has, unless the server declared less
//!   or the body may not have so much.
//!
//! A body takes from the pools in their order only. Thus those who hold a share of the last pool
//! always finish (or time out), and so do, from the last to the first, those who hold shares of the
//! others; those who wait for one follow in order of arrival, and those who wait for a slot hold
//! nothing: there is no circle. Every pool has room for at least one body. When a body is complete,
//! what it did not use goes back, and the rest when the [`BodyPermit`] is dropped.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// A page of forty posts is about 120 KB.
const SLOT_BYTES: usize = 256 * 1024;
/// How much larger the bodies of a pool may be than those of the one before.
const GROWTH: usize = 8;
/// One permit of a semaphore stands for so many bytes, so that four bytes can count them.
const UNIT_BYTES: usize = 1024;

#[derive(Debug)]
struct Pool {
    semaphore: Arc<Semaphore>,
    units: usize,
    /// What a body may have that has its share of this pool and of all before it.
    body_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct BodyBudget {
    pools: Arc<[Pool]>,
}

impl BodyBudget {
    /// `total_bytes` is at least `largest_body_bytes`, which no body exceeds.
    pub(crate) fn new(total_bytes: usize, largest_body_bytes: usize) -> Self {
        let mut sizes = vec![SLOT_BYTES.min(largest_body_bytes)];
        while let Some(size) = sizes.last().filter(|size| **size < largest_body_bytes) {
            sizes.push(size.saturating_mul(GROWTH).min(largest_body_bytes));
        }
        let room = rooms(units(total_bytes), &sizes);
        let pools = sizes.into_iter().zip(room).map(|(body_bytes, units)| Pool {
            semaphore: Arc::new(Semaphore::new(units)),
            units,
            body_bytes,
        });
        Self {
            pools: pools.collect(),
        }
    }

    /// Waits for a slot, in order of arrival.
    pub(crate) async fn reserve(&self) -> Result<Reservation, AcquireError> {
        let slot = &self.pools[0];
        let share = acquire(&slot.semaphore, units(slot.body_bytes)).await?;
        Ok(Reservation {
            permit: BodyPermit {
                shares: vec![share],
            },
            bytes: slot.body_bytes,
            pools: Arc::clone(&self.pools),
        })
    }

    /// What is reserved now: bodies being read and bodies whose permit is still held.
    pub(crate) fn reserved_bytes(&self) -> usize {
        let reserved = |pool: &Pool| pool.units - pool.semaphore.available_permits();
        self.pools.iter().map(reserved).sum::<usize>() * UNIT_BYTES
    }
}

/// How much each pool has: room for one body, and a part of the rest. Half of that is for the slots;
/// the largest bodies, of which there are few, leave theirs to those between.
fn rooms(total_units: usize, sizes: &[usize]) -> Vec<usize> {
    let before = std::iter::once(0).chain(sizes.iter().copied());
    let one_each = sizes.iter().zip(before);
    let mut rooms: Vec<usize> = one_each
        .map(|(size, before)| units(*size) - units(before))
        .collect();
    let rest = total_units.saturating_sub(rooms.iter().sum());
    let others = match rooms.len() {
        1 => 0..0,
        2 => 1..2,
        count => 1..count - 1,
    };
    let each = rest / 2 / others.len().max(1);
    for room in &mut rooms[others] {
        *room += each;
    }
    rooms[0] += total_units - rooms.iter().sum::<usize>();
    rooms
}

/// What one body may grow to while it is being read.
#[derive(Debug)]
pub(crate) struct Reservation {
    permit: BodyPermit,
    bytes: usize,
    pools: Arc<[Pool]>,
}

impl Reservation {
    /// How long the body may get without asking again.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes room for a body that is so long by now, and for no more than `most_bytes`: the length
    /// that was declared, or what it may have. Safe to cancel.
    pub(crate) async fn grow(
        &mut self,
        length: usize,
        most_bytes: usize,
    ) -> Result<(), AcquireError> {
        while length.min(most_bytes) > self.bytes {
            let Some(pool) = self.pools.get(self.permit.shares.len()) else {
                return Ok(());
            };
            let wanted_bytes = pool.body_bytes.min(most_bytes);
            let more_units = units(wanted_bytes) - units(self.bytes);
            let share = acquire(&pool.semaphore, more_units).await?;
            self.permit.shares.push(share);
            self.bytes = wanted_bytes;
        }
        Ok(())
    }

    /// The body is complete: gives back what it did not use.
    pub(crate) fn settle(self, body_bytes: usize) -> BodyPermit {
        let mut permit = self.permit;
        let mut left_units = units(body_bytes);
        for share in &mut permit.shares {
            let keep_units = share.num_permits().min(left_units);
            left_units -= keep_units;
            shrink(share, keep_units);
        }
        permit
    }
}

/// A body's share of the byte budget, given back when dropped.
#[derive(Debug)]
pub struct BodyPermit {
    /// Of the first pools, one each.
    shares: Vec<OwnedSemaphorePermit>,
}

impl BodyPermit {
    /// The size of the share: the body's length, rounded up.
    pub fn reserved_bytes(&self) -> usize {
        let units = self.shares.iter().map(OwnedSemaphorePermit::num_permits);
        units.sum::<usize>() * UNIT_BYTES
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
        reservation.grow(SLOT_BYTES + 1, MIB).await.unwrap();
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
    async fn a_body_takes_no_more_than_the_next_pool_gives_and_it_may_have() {
        let budget = BodyBudget::new(128 * MIB, 64 * MIB);
        let mut declared = budget.reserve().await.unwrap();
        declared.grow(SLOT_BYTES + 1, MIB).await.unwrap();
        assert_eq!(budget.reserved_bytes(), MIB);
        // It was declared to be no longer.
        declared.grow(MIB + 1, MIB).await.unwrap();
        assert_eq!(declared.bytes(), MIB);
        let mut growing = budget.reserve().await.unwrap();
        for (length, bytes) in [
            (SLOT_BYTES, SLOT_BYTES),
            (SLOT_BYTES + 1, 2 * MIB),
            (2 * MIB + 1, 16 * MIB),
            (16 * MIB + 1, 40 * MIB),
            (usize::MAX, 40 * MIB),
        ] {
            growing.grow(length, 40 * MIB).await.unwrap();
            assert_eq!(growing.bytes(), bytes);
        }
        assert_eq!(growing.settle(17 * MIB).reserved_bytes(), 17 * MIB);
        // Some come in one piece.
        let mut greedy = budget.reserve().await.unwrap();
        greedy.grow(50 * MIB, 64 * MIB).await.unwrap();
        assert_eq!((greedy.bytes(), greedy.permit.shares.len()), (64 * MIB, 4));
    }

    #[test]
    fn the_pools_make_up_the_budget_and_each_serves_a_body() {
        let sizes = [
            1,
            1023,
            1025,
            SLOT_BYTES - 1,
            SLOT_BYTES,
            SLOT_BYTES + 1,
            MIB,
            16 * MIB,
            64 * MIB,
        ];
        for largest_bytes in sizes {
            for factor in [1, 2, 3, 10] {
                let total_bytes = largest_bytes * factor;
                let budget = BodyBudget::new(total_bytes, largest_bytes);
                let all: usize = budget.pools.iter().map(|pool| pool.units).sum();
                assert_eq!(all, units(total_bytes));
                let mut before = 0;
                for pool in budget.pools.iter() {
                    assert!(pool.units >= units(pool.body_bytes) - before);
                    before = units(pool.body_bytes);
                }
                assert_eq!(before, units(largest_bytes));
            }
        }
        // What a fetcher has unless it is told otherwise.
        let budget = BodyBudget::new(160 * MIB, 96 * MIB);
        let rooms = budget.pools.iter().map(|pool| pool.units * UNIT_BYTES);
        let expected = [129 * SLOT_BYTES, 71 * SLOT_BYTES, 30 * MIB, 80 * MIB];
        assert_eq!(rooms.collect::<Vec<_>>(), expected);
    }

    /// The smallest budget there can be, and everybody wants the most: all get through, and never
    /// do all together hold more than the budget.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn many_growing_bodies_never_wait_for_each_other_in_a_circle() {
        const LARGEST: usize = 9 * MIB;
        const TOTAL: usize = LARGEST + 3 * SLOT_BYTES;
        let budget = Arc::new(BodyBudget::new(TOTAL, LARGEST));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..200_usize {
            let budget = Arc::clone(&budget);
            tasks.spawn(async move {
                let mut reservation = budget.reserve().await.unwrap();
                tokio::task::yield_now().await;
                let most_bytes = [SLOT_BYTES, LARGEST / 2, LARGEST][number % 3];
                for length in [MIB, most_bytes] {
                    reservation.grow(length, most_bytes).await.unwrap();
                    tokio::task::yield_now().await;
                }
                assert!(budget.reserved_bytes() <= TOTAL);
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
        first.grow(MIB, MIB).await.unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(10), budget.reserve()).await;
        assert!(waited.is_err());
        drop(first);
        assert_eq!(budget.reserved_bytes(), 0);
    }
}
