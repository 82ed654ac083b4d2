//! How much is left for a walk that must not be broken off.

use super::{Charge, Purse};
use crate::EngineError;
use kittiwake_model::LimitTime;

/// What is left of the scarcest of some budgets, in calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub left: u64,
    /// When none of it is used.
    pub whole: u64,
    pub whole_at: LimitTime,
}

impl Purse {
    /// What is left of the budgets of a call, whoever uses them; nothing where limits are off or
    /// nothing is counted over time.
    pub(crate) async fn room(&self, charges: &[Charge]) -> Result<Option<Room>, EngineError> {
        let Some(ledger) = &self.ledger else {
            return Ok(None);
        };
        let usages = ledger.usage(self.clock.limit()).await?;
        let rooms = charges.iter().filter_map(|charge| {
            let pocket = self.pockets.get(&charge.budget)?;
            let kind = &pocket.rule.kind;
            kind.length_us()?;
            let usage = usages.iter().find(|usage| usage.budget == pocket.id);
            // What we hold counts as used, and is ours to use.
            let used = usage.map_or(0, |usage| usage.used);
            let used = used.saturating_sub(pocket.unspent());
            let most = charge.cost.most().max(1);
            let until = pocket.others_until(self.now_for(kind));
            Some(Room {
                left: pocket.limit.saturating_sub(used) / most,
                whole: pocket.limit / most,
                whole_at: self.on_our_clock(kind, until),
            })
        });
        Ok(rooms.min_by_key(|room| room.left))
    }
}
