//! Hard caps of one run: how many calls it may make, and what it may spend. Pure.
//!
//! What a call may cost at most is set aside before it is sent; what it did not cost is free again
//! when it is answered. So a cap holds whatever is under way, and however answers come in.

use crate::exchange::Shop;
use crate::permits::Paid;
use crate::settings::End;
use crate::work::Call;
use kittiwake_model::{Cost, MONEY_SCALE, Name, Unit};
use kittiwake_network::{Network, RequestPlan};
use std::fmt;
use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

/// The most that a run may spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendCap {
    /// The code of the currency.
    pub currency: Name,
    /// In millionths.
    pub units: u64,
}

impl fmt::Display for SpendCap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.units / MONEY_SCALE, self.units % MONEY_SCALE);
        let part = format!("{part:06}");
        let part = part.trim_end_matches('0');
        match part.len() {
            0 => write!(formatter, "{whole}{}", self.currency),
            _ => write!(formatter, "{whole}.{part:0<2}{}", self.currency),
        }
    }
}

/// One cap: what is spent for good, and what is set aside for calls under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cap {
    limit: u64,
    spent: u64,
    reserved: u64,
    /// Something was refused while nothing was under way that could have made room.
    is_reached: bool,
}

impl Cap {
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            limit,
            spent: 0,
            reserved: 0,
            is_reached: false,
        }
    }

    /// Sets aside what a call costs at most; `false` if so much is not left.
    #[must_use]
    pub(crate) fn reserve(&mut self, most: u64) -> bool {
        let taken = self.spent.saturating_add(self.reserved);
        let fits = taken
            .checked_add(most)
            .is_some_and(|needed| needed <= self.limit);
        if fits {
            self.reserved += most;
        } else {
            self.is_reached |= self.reserved == 0;
        }
        fits
    }

    /// A call that was set aside for has cost so much, and no more than that.
    pub(crate) fn settle(&mut self, most: u64, cost: u64) {
        self.reserved = self.reserved.saturating_sub(most);
        self.spent = self.spent.saturating_add(cost.min(most));
    }

    /// Whether nothing can make room any more for what was wanted.
    pub(crate) const fn is_reached(&self) -> bool {
        self.is_reached
    }
}

/// The caps of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caps {
    calls: Option<Cap>,
    spend: Option<(SpendCap, Cap)>,
    /// Nothing is sent from then on.
    until: Option<Instant>,
}

impl Caps {
    pub(crate) fn new(
        calls_max: Option<u64>,
        spend_max: Option<SpendCap>,
        until: Option<Instant>,
    ) -> Self {
        Self {
            calls: calls_max.map(Cap::new),
            spend: spend_max.map(|cap| {
                let units = cap.units;
                (cap, Cap::new(units))
            }),
            until,
        }
    }

    /// Sets aside what a call may cost at most; `false` if a cap does not allow it.
    #[must_use]
    pub(crate) fn reserve(&mut self, network: &Network, costs: &[Cost], now: Instant) -> bool {
        if self.until.is_some_and(|until| now >= until) {
            return false;
        }
        if let Some(calls) = &mut self.calls
            && !calls.reserve(1)
        {
            return false;
        }
        if let Some((cap, spend)) = &mut self.spend
            && !spend.reserve(spent(network, costs, &cap.currency, Cost::most))
        {
            // The call is not made.
            if let Some(calls) = &mut self.calls {
                calls.settle(1, 0);
            }
            return false;
        }
        true
    }

    /// The call was answered with so many items, or nobody knows what became of it. `paid` says what it
    /// has cost of budgets for which it matters what the items were.
    pub(crate) fn settle(
        &mut self,
        network: &Network,
        costs: &[Cost],
        items: Option<u64>,
        paid: &[Paid],
    ) {
        if let Some(calls) = &mut self.calls {
            calls.settle(1, 1);
        }
        if let Some((cap, spend)) = &mut self.spend {
            let most = spent(network, costs, &cap.currency, Cost::most);
            let came = |items| {
                spent(network, costs, &cap.currency, |cost| {
                    let own = paid.iter().find(|it| it.name == cost.budget);
                    own.map_or_else(|| cost.of(items).min(cost.most()), |own| own.units)
                })
            };
            spend.settle(most, items.map_or(most, came));
        }
    }

    /// What may be spent on one call, while nothing is under way that could make room.
    fn room(&self) -> Option<(&Name, u64)> {
        let (cap, spend) = self.spend.as_ref()?;
        (spend.reserved == 0).then(|| (&cap.currency, spend.limit.saturating_sub(spend.spent)))
    }

    /// Whether a cap forbids a call for good, as it stands.
    pub(crate) fn is_too_dear(&self, network: &Network, costs: &[Cost]) -> bool {
        self.room()
            .is_some_and(|(currency, room)| spent(network, costs, currency, Cost::most) > room)
    }

    /// The call was not made after all.
    pub(crate) fn give_back(&mut self, network: &Network, costs: &[Cost]) {
        if let Some(calls) = &mut self.calls {
            calls.settle(1, 0);
        }
        if let Some((cap, spend)) = &mut self.spend {
            spend.settle(spent(network, costs, &cap.currency, Cost::most), 0);
        }
    }

    /// How the run ends, if a cap ends it.
    pub(crate) fn reached(&self) -> Option<End> {
        if self.calls.as_ref().is_some_and(Cap::is_reached) {
            return Some(End::Calls);
        }
        let (cap, spend) = self.spend.as_ref()?;
        spend.is_reached().then(|| End::Spend(cap.to_string()))
    }
}

/// What costs come to in a currency.
fn spent(network: &Network, costs: &[Cost], currency: &str, amount: impl Fn(&Cost) -> u64) -> u64 {
    let is_paid = |cost: &&Cost| {
        let rule = network.budget(&cost.budget);
        matches!(rule.map(|rule| &rule.unit), Some(Unit::Money(unit)) if **unit == *currency)
    };
    let amounts = costs.iter().filter(is_paid).map(amount);
    amounts.fold(0, u64::saturating_add)
}

impl Shop {
    /// Sets aside for a call; `false` if a cap does not allow it.
    pub(crate) fn set_aside(&self, plan: &RequestPlan) -> bool {
        let network = &self.settings.network;
        self.caps().reserve(network, &plan.costs, Instant::now())
    }

    /// The plan of a smaller page, where a full one is dearer than all that may still be spent.
    pub(crate) fn affordable(&self, call: &Call) -> Option<RequestPlan> {
        let network = &self.settings.network;
        let caps = self.caps();
        if !caps.is_too_dear(network, &call.plan.costs) {
            return None;
        }
        let query = network.query(&call.step.query)?;
        let mut plan = call.plan.clone();
        while caps.is_too_dear(network, &plan.costs) {
            let size = query.smaller_page(&plan.url)?;
            query.shrink(&mut plan, size);
        }
        Some(plan)
    }

    pub(crate) fn give_back(&self, plan: &RequestPlan) {
        self.caps().give_back(&self.settings.network, &plan.costs);
    }

    pub(crate) fn settle_caps(&self, call: &Call, items: Option<u64>, paid: &[Paid]) {
        self.caps()
            .settle(&self.settings.network, &call.plan.costs, items, paid);
    }

    pub(crate) fn cap_reached(&self) -> Option<End> {
        self.caps().reached()
    }

    /// Nothing in here can panic half way, so what another thread left is whole.
    fn caps(&self) -> MutexGuard<'_, Caps> {
        self.caps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kittiwake_model::BudgetId;
    use proptest::prelude::*;

    proptest! {
        /// Calls are sent and answered in any order, several at once, and answers cost up to what
        /// was set aside for them. What is really spent never passes the cap, and the cap is said
        /// to be reached only when what was wanted is too much for what is left.
        #[test]
        fn a_cap_is_never_exceeded_whatever_is_under_way(
            limit in 0_u64..500,
            steps in prop::collection::vec((any::<bool>(), 0_u64..60, 0.0_f64..=1.0), 0..300),
        ) {
            let mut cap = Cap::new(limit);
            let mut flying: Vec<(u64, u64)> = Vec::new();
            let mut spent = 0;
            for (is_send, most, share) in steps {
                if is_send {
                    let could: u64 = spent + flying.iter().map(|(most, _)| most).sum::<u64>();
                    let was_reached = cap.is_reached();
                    let fits = cap.reserve(most);
                    prop_assert_eq!(fits, could + most <= limit);
                    if fits {
                        flying.push((most, (most as f64 * share) as u64));
                    } else if flying.iter().all(|(most, _)| *most == 0) {
                        prop_assert!(cap.is_reached());
                    } else {
                        prop_assert_eq!(cap.is_reached(), was_reached);
                    }
                } else if !flying.is_empty() {
                    let place = (share * (flying.len() - 1) as f64) as usize;
                    let (most, cost) = flying.swap_remove(place);
                    cap.settle(most, cost);
                    spent += cost;
                }
                let at_worst = spent + flying.iter().map(|(most, _)| most).sum::<u64>();
                prop_assert!(at_worst <= limit, "{at_worst} of {limit}");
            }
        }

        /// Whatever order answers come in, exactly so many calls are made as are allowed.
        #[test]
        fn every_allowed_call_is_made_and_not_one_more(
            limit in 0_u64..60,
            room in 1_usize..9,
            answers in prop::collection::vec(1_usize..5, 1..9),
        ) {
            let network = network();
            let mut caps = Caps::new(Some(limit), None, None);
            let now = Instant::now();
            let mut flying = 0;
            let mut made = 0;
            for answers in answers.iter().cycle().take(1_000) {
                if caps.reached().is_some() {
                    break;
                }
                while flying < room && caps.reserve(&network, &[], now) {
                    flying += 1;
                }
                for _ in 0..flying.min(*answers) {
                    caps.settle(&network, &[], None, &[]);
                    flying -= 1;
                    made += 1;
                }
            }
            prop_assert_eq!(made, limit);
            prop_assert_eq!(caps.reached(), Some(End::Calls));
        }
    }

    fn network() -> Network {
        let text = r#"
            format = 1
            name = "paid"
            title = "Paid"
            description = "d"
            verified_on = "2026-11-16"
            sources = ["s"]
            [host]
            kind = "fixed"
            address = "https://paid.example"
            [types.user]
            table = "users"
            canonical = ".id"
            [budgets.money]
            scope = "host"
            unit = "USD"
            kind = "month"
            [queries.user]
            description = "one"
            subject = "user"
            path = "/u/{canonical}"
            costs = { money = { call = "0.01", item = "0.005" } }
            [[queries.user.selects]]
            at = "."
            as = "user"
            is_subject = true
            [[robots]]
            name = "users"
            title = "Users"
            description = "users"
            subject = "user"
            steps = [{ query = "user" }]
            [[seeds]]
            pattern = "{id}"
            type = "user"
            value = "{id}"
        "#;
        Network::parse("paid.toml", text).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn cost(items_max: u64) -> Cost {
        Cost {
            budget: "money".into(),
            call: 10_000,
            item: 5_000,
            beside: 0,
            items_max,
        }
    }

    #[test]
    fn money_is_set_aside_for_a_full_page_and_the_rest_is_free_again() {
        let (network, now) = (network(), Instant::now());
        let cap = SpendCap {
            currency: "USD".into(),
            units: 1_000_000,
        };
        let mut caps = Caps::new(None, Some(cap), None);
        // 0.51 each at most: two of them do not fit.
        let page = [cost(100)];
        assert!(caps.reserve(&network, &page, now));
        assert!(!caps.reserve(&network, &page, now));
        assert_eq!(caps.reached(), None, "an answer may make room");
        caps.settle(&network, &page, Some(2), &[]);
        // 0.02 were paid.
        assert!(caps.reserve(&network, &page, now));
        caps.settle(&network, &page, None, &[]);
        // 0.51 more, as nobody knows what came.
        assert!(!caps.reserve(&network, &page, now));
        assert_eq!(caps.reached(), Some(End::Spend("1USD".into())));
    }

    #[test]
    fn what_was_charged_before_is_not_spent_again() {
        let (network, now) = (network(), Instant::now());
        let cap = SpendCap {
            currency: "USD".into(),
            units: 600_000,
        };
        let mut caps = Caps::new(None, Some(cap), None);
        let page = [cost(100)];
        for _ in 0..20 {
            assert!(caps.reserve(&network, &page, now));
            let paid = Paid {
                budget: BudgetId("money".to_owned()),
                name: "money".into(),
                units: 0,
            };
            caps.settle(&network, &page, Some(100), &[paid]);
        }
        assert!(!caps.is_too_dear(&network, &page));
        assert!(caps.is_too_dear(&network, &[cost(119)]));
        assert!(caps.reserve(&network, &page, now));
        assert!(
            !caps.is_too_dear(&network, &[cost(119)]),
            "an answer may make room"
        );
    }

    #[test]
    fn what_is_not_paid_in_the_currency_of_the_cap_is_not_capped() {
        let cap = SpendCap {
            currency: "EUR".into(),
            units: 1,
        };
        let mut caps = Caps::new(None, Some(cap), None);
        assert!(caps.reserve(&network(), &[cost(100)], Instant::now()));
    }

    #[test]
    fn a_call_that_is_not_made_costs_nothing() {
        let (network, now) = (network(), Instant::now());
        let mut caps = Caps::new(Some(1), None, None);
        assert!(caps.reserve(&network, &[], now));
        caps.give_back(&network, &[]);
        assert!(caps.reserve(&network, &[], now));
    }

    #[test]
    fn nothing_is_sent_once_the_time_is_over() {
        let (network, now) = (network(), Instant::now());
        let until = now + std::time::Duration::from_secs(5);
        let mut caps = Caps::new(None, None, Some(until));
        assert!(caps.reserve(&network, &[], now));
        assert!(!caps.reserve(&network, &[], until));
    }

    #[test]
    fn caps_are_shown_as_they_are_written() {
        for (units, text) in [
            (20_000_000, "20USD"),
            (500_000, "0.50USD"),
            (1, "0.000001USD"),
        ] {
            let currency = "USD".into();
            assert_eq!(SpendCap { currency, units }.to_string(), text);
        }
    }
}
