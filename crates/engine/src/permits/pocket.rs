//! One budget as one process draws from it: what it holds, what it may send when, and until when
//! what it spent counts. Pure; the times are those of the clock that the budget goes by.

use super::pace::Beat;
use kittiwake_model::{BudgetId, BudgetRule, Cost, LimitTime, Window, WindowKind};
use kittiwake_network::{LimitReport, budget};
use kittiwake_store::ledger::{Grant, Opened, Part, Settling, Term, Want};
use std::collections::VecDeque;

/// A block of grants is this part of a window's allowance, so that a crash costs little.
const BLOCKS_PER_WINDOW: u64 = 20;
const BLOCK_CALLS_MAX: u64 = 25;
/// The same where a limit is learnt from what all processes have settled: the less they hold, the
/// more is known.
const LEARNING_BLOCKS_PER_WINDOW: u64 = 100;
/// A grant that belongs to no window of the calendar is to be used within this part of its length,
/// so that what a crash leaves is known to be over.
const USE_WITHIN_PARTS: i64 = 20;
/// The same where calls are counted at once.
const USE_WITHIN_US: i64 = 2_000_000;
/// A budget of which others may hand something back is asked again after this part of a window.
const ASK_AGAIN_PARTS: i64 = 400;
/// What comes back one by one is remembered in so many steps of a window.
const STEPS_PER_WINDOW: i64 = 400;
/// What is spread over a window is spread over all but this part of it, so that calls that come late
/// are still within it.
const SLACK_PARTS: i64 = 50;

/// Calls that are remembered to learn a limit from.
const RECENT_MAX: usize = 100_000;

/// The present by the clock that a budget goes by. Of another's clock one knows only within what
/// bounds it is: a window is over when it is so for certain, and what is sent while it may be over
/// takes of it and of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// At the earliest: what was over by then is over.
    pub(super) at: LimitTime,
    pub(super) latest: LimitTime,
}

impl Moment {
    /// By a clock that is our own.
    pub(super) const fn certain(at: LimitTime) -> Self {
        Self { at, latest: at }
    }
}

/// One budget.
#[derive(Debug)]
pub(super) struct Pocket {
    pub(super) id: BudgetId,
    pub(super) rule: BudgetRule,
    /// Units after the reserve.
    pub(super) declared: u64,
    /// The same, as the server's word has it.
    pub(super) limit: u64,
    held: Vec<Held>,
    /// The window of the calendar that was last drawn from.
    pub(super) opened: Option<Window>,
    /// The server wants nothing before.
    pub(super) shut_until: LimitTime,
    /// The ledger has nothing more to give before; what is held can be spent.
    pub(super) dry_until: LimitTime,
    /// A call that was sent arrives within this time, or never.
    transit_us: i64,
    pub(super) beat: Beat,
    /// Units that count beside those of this process, when the ledger was last asked.
    others: u64,
    /// Those of them that were spent for certain.
    spent_by_others: u64,
    /// Units that were under way then, or drawn since.
    drawn: u64,
    pub(super) spent: u64,
    pub(super) calls: u64,
    pub(super) word: ServerWord,
    /// Answered calls of the last length, for comparison with the server's word.
    recent: VecDeque<Recent>,
    /// Of a limit that only the server knows: whether anybody was ever told how much of it is used.
    pub(super) is_share_told: bool,
}

/// A call that was answered.
#[derive(Debug, Clone, Copy)]
struct Recent {
    sent: LimitTime,
    answered: LimitTime,
    units: u64,
}

/// What the server said of the present window.
#[derive(Debug, Default)]
pub(super) struct ServerWord {
    /// Units of the window that were answered, for comparison.
    pub(super) answered: u64,
    /// The greatest excess that was shown.
    pub(super) excess: u64,
    /// The least that is left, without what we leave to others.
    pub(super) least_left: Option<u64>,
    /// Units that were answered without a word on this budget.
    pub(super) silent: u64,
    /// The first of those that `least_left` is sure to reflect.
    pub(super) silent_reflected: u64,
}

/// A grant, and what became of it so far.
#[derive(Debug)]
struct Held {
    grant: i64,
    unspent: u64,
    /// Units that were sent and are unanswered.
    flying: u64,
    /// What was answered, and until when it counts.
    parts: Vec<Part>,
    belongs: Belongs,
}

/// Why it is asked what there is to tell of grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// A window of the calendar begins.
    Entering,
    Passing,
    /// The crawl is over. A grant with a call that may still be on its way stays open, as after a
    /// crash.
    Closing,
}

/// When a grant may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Belongs {
    /// To one window of the calendar, or to all that it may have been when it was asked for; before
    /// a time that may lie within.
    ToWindow(Window, LimitTime),
    ToOpened(Opened, LimitTime),
    Before(LimitTime),
}

/// What came of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Came {
    pub(super) items: u64,
    /// What it has cost, if that is not a matter of how many items it were.
    pub(super) units: Option<u64>,
}

/// Units of one budget that one call has taken.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) budget: BudgetId,
    cost: Cost,
    pieces: Vec<(i64, u64)>,
    /// The server's silence when the call was sent: those calls had been counted before it was.
    pub(super) silent_before: u64,
    /// The window it was sent in.
    pub(super) window: Option<Window>,
    sent: LimitTime,
    is_blind: bool,
}

impl Pocket {
    pub(super) fn new(id: BudgetId, rule: &BudgetRule, limit: u64, transit_us: i64) -> Self {
        Self {
            id,
            rule: rule.clone(),
            declared: limit,
            limit,
            held: Vec::new(),
            opened: None,
            shut_until: LimitTime(i64::MIN),
            dry_until: LimitTime(i64::MIN),
            transit_us,
            beat: Beat::default(),
            others: 0,
            spent_by_others: 0,
            drawn: 0,
            spent: 0,
            calls: 0,
            word: ServerWord::default(),
            recent: VecDeque::new(),
            is_share_told: false,
        }
    }

    pub(super) fn window(&self, now: LimitTime) -> Option<Window> {
        budget::window_at(&self.rule.kind, now)
    }

    /// The part of a length within which a grant is to be used.
    fn use_within_us(&self) -> i64 {
        self.rule
            .kind
            .length_us()
            .map_or(USE_WITHIN_US, |length_us| {
                (length_us / USE_WITHIN_PARTS).max(1)
            })
    }

    fn transit_us(&self) -> i64 {
        self.rule
            .kind
            .length_us()
            .map_or(self.transit_us, |length_us| length_us.min(self.transit_us))
    }

    fn is_usable(&self, held: &Held, moment: Moment) -> bool {
        let now = moment.at;
        match held.belongs {
            Belongs::ToWindow(window, end) => {
                window.contains(now) && window.contains(moment.latest) && now < end
            }
            Belongs::ToOpened(opened, end) => now < end && now < self.last_send(opened),
            Belongs::Before(end) => now < end,
        }
    }

    /// Up to when calls of a window that began with a call may be sent.
    pub(super) fn last_send(&self, opened: Opened) -> LimitTime {
        let length_us = self.rule.kind.length_us().unwrap_or(0);
        opened.earliest.plus_us(length_us - self.drain_us())
    }

    /// What is sent this long before the end of a window is commonly answered when it ends.
    fn drain_us(&self) -> i64 {
        self.rule.kind.length_us().unwrap_or(0) / 400
    }

    fn usable(&self, moment: Moment) -> u64 {
        let usable = self.held.iter().filter(|held| self.is_usable(held, moment));
        usable.map(|held| held.unspent).sum()
    }

    pub(super) fn flying(&self) -> u64 {
        self.held.iter().map(|held| held.flying).sum()
    }

    pub(super) fn unspent(&self) -> u64 {
        self.held.iter().map(|held| held.unspent).sum()
    }

    /// What has to be asked of the ledger before a call of this cost.
    pub(super) fn want(&self, cost: &Cost, moment: Moment, holder: &str) -> Option<Want> {
        let now = moment.at;
        let most = cost.most();
        let lacking = most.saturating_sub(self.usable(moment));
        if lacking == 0 {
            return None;
        }
        let blocks = match self.rule.kind {
            WindowKind::Percent { .. } => LEARNING_BLOCKS_PER_WINDOW,
            _ => BLOCKS_PER_WINDOW,
        };
        let block = (self.limit / most.max(1) / blocks).clamp(1, BLOCK_CALLS_MAX);
        let length_us = self.rule.kind.length_us().unwrap_or(USE_WITHIN_US);
        // Whoever does not know which window it is takes of many at once: then as little as can be.
        let is_lost = moment.latest.since_us(now) > length_us;
        let is_block = lacking == most && !is_lost;
        Some(Want {
            budget: self.id.clone(),
            at: now,
            limit: self.limit,
            call_units: lacking,
            calls: if is_block { block as u32 } else { 1 },
            term: self.term(moment),
            ask_again: now.plus_us((length_us / ASK_AGAIN_PARTS).max(1)),
            use_us: self.use_within_us() + self.transit_us(),
            holder: holder.to_owned(),
        })
    }

    fn term(&self, moment: Moment) -> Term {
        if let WindowKind::FromFirst { length_us } = self.rule.kind {
            return Term::FromFirst {
                length_us,
                drain_us: self.drain_us(),
                transit_us: self.transit_us(),
            };
        }
        // Calls that may be under way when their window ends may count in the next one.
        let arrived = moment
            .latest
            .plus_us(self.use_within_us() + self.transit_us());
        if let (Some(window), Some(last)) = (self.window(moment.at), self.window(arrived)) {
            return Term::Until {
                until: last.end,
                window: window.start,
            };
        }
        let length_us = self.rule.kind.length_us().unwrap_or(0);
        Term::Until {
            until: arrived.plus_us(length_us),
            window: LimitTime(0),
        }
    }

    /// Takes in what was asked for then and is granted now.
    pub(super) fn take_in(&mut self, grant: &Grant, asked: Moment, now: LimitTime) {
        let end = now.plus_us(self.use_within_us());
        let windows = (self.window(asked.at), self.window(asked.latest));
        let belongs = match (grant.opened, windows) {
            (Some(opened), _) => Belongs::ToOpened(opened, LimitTime(i64::MAX)),
            (None, (Some(Window { start, .. }), Some(last))) => {
                let all = Window {
                    start,
                    end: last.end,
                };
                Belongs::ToWindow(all, end)
            }
            (None, _) => Belongs::Before(end),
        };
        self.dry_until = LimitTime(i64::MIN);
        self.others = grant
            .others
            .saturating_sub(self.unspent())
            .saturating_sub(self.flying());
        self.drawn = self.flying();
        self.spent_by_others = grant.spent_by_others;
        self.held.push(Held {
            grant: grant.id,
            unspent: grant.units,
            flying: 0,
            parts: Vec::new(),
            belongs,
        });
    }

    /// Units that are left of the present window, as far as is known here.
    pub(super) fn left(&self) -> u64 {
        self.limit
            .saturating_sub(self.others)
            .saturating_sub(self.drawn)
    }

    /// Takes the units of a call. `is_blind` says that the server's clock is not known yet.
    pub(super) fn draw(&mut self, cost: &Cost, moment: Moment, is_blind: bool) -> Drawn {
        let most = cost.most();
        let mut pieces = Vec::with_capacity(1);
        let mut lacking = most;
        for place in 0..self.held.len() {
            if lacking == 0 {
                break;
            }
            if !self.is_usable(&self.held[place], moment) {
                continue;
            }
            let held = &mut self.held[place];
            let units = held.unspent.min(lacking);
            if units == 0 {
                continue;
            }
            held.unspent -= units;
            held.flying += units;
            lacking -= units;
            pieces.push((held.grant, units));
        }
        self.drawn = self.drawn.saturating_add(most);
        self.spent = self.spent.saturating_add(most);
        self.calls += 1;
        Drawn {
            budget: self.id.clone(),
            cost: cost.clone(),
            pieces,
            silent_before: self.word.silent,
            window: self.window(moment.at),
            sent: moment.at,
            is_blind,
        }
    }

    /// A call was answered, and counted by `now` at the latest: perhaps in a window
    /// that had just begun. What it did not cost can be spent again.
    pub(super) fn settle(&mut self, drawn: &Drawn, came: Came, now: LimitTime) {
        let most = drawn.cost.most();
        let cost = came.units.unwrap_or_else(|| drawn.cost.of(came.items));
        let cost = cost.min(most);
        let mut to_return = most - cost;
        // To learn from, only what is sure to have been counted.
        let is_learnt = matches!(self.rule.kind, WindowKind::Percent { .. });
        let known = if is_learnt && came.items == u64::MAX {
            drawn.cost.of(0)
        } else {
            cost
        };
        self.remember(drawn.sent, known, now);
        self.spent = self.spent.saturating_sub(to_return);
        self.drawn = self.drawn.saturating_sub(to_return);
        let step_us = match self.rule.kind {
            WindowKind::Sliding { length_us } | WindowKind::Percent { length_us } => {
                length_us / STEPS_PER_WINDOW
            }
            _ => 1,
        };
        for (grant, units) in drawn.pieces.iter().rev() {
            let until = self.counts_until(*grant, now);
            // It may have been in the next window by the server's clock.
            let next = self.window(until).filter(|_| drawn.is_blind);
            let until = next.map_or(until, |next| next.end);
            let is_now = self.window(now) == self.opened;
            let Some(held) = self.held.iter_mut().find(|held| held.grant == *grant) else {
                continue;
            };
            let returned = to_return.min(*units);
            to_return -= returned;
            held.flying = held.flying.saturating_sub(*units);
            held.unspent += returned;
            let spent = units - returned;
            if is_now {
                self.word.answered += spent;
            }
            if self.rule.kind == WindowKind::Concurrency {
                held.unspent += spent;
            } else {
                add_part(&mut held.parts, spent, until, step_us);
            }
        }
    }

    fn remember(&mut self, sent: LimitTime, units: u64, now: LimitTime) {
        let (WindowKind::Percent { length_us }
        | WindowKind::Sliding { length_us }
        | WindowKind::FromFirst { length_us }) = self.rule.kind
        else {
            return;
        };
        self.recent.push_back(Recent {
            sent,
            answered: now,
            units,
        });
        while let Some(first) = self.recent.front()
            && (now.since_us(first.sent) >= length_us || self.recent.len() > RECENT_MAX)
        {
            self.recent.pop_front();
        }
    }

    /// Until when a call counts that was made out of this grant and is answered now.
    fn counts_until(&self, grant: i64, now: LimitTime) -> LimitTime {
        let length_us = self.rule.kind.length_us().unwrap_or(0);
        let held = self.held.iter().find(|held| held.grant == grant);
        match held.map(|held| held.belongs) {
            // The server may have counted it in any window until then.
            Some(Belongs::ToWindow(..)) => self.window(now).map_or(now, |window| window.end),
            Some(Belongs::ToOpened(opened, _)) => {
                let end = opened.latest.plus_us(length_us);
                let is_late = now >= opened.earliest.plus_us(length_us);
                if is_late { end.plus_us(length_us) } else { end }
            }
            Some(Belongs::Before(_)) | None => now.plus_us(length_us),
        }
    }

    /// The first answer in a window that began with a call tells when it began at the latest: the
    /// name of the window, if that is news.
    pub(super) fn heard_in_opened(
        &mut self,
        drawn: &Drawn,
        now: LimitTime,
    ) -> Option<(LimitTime, Opened)> {
        let (grant, _) = drawn.pieces.first()?;
        let held = self.held.iter().find(|held| held.grant == *grant)?;
        let Belongs::ToOpened(opened, _) = held.belongs else {
            return None;
        };
        if now >= opened.latest {
            return None;
        }
        let narrower = Opened {
            latest: now,
            ..opened
        };
        let length_us = self.rule.kind.length_us().unwrap_or(0);
        let is_same = |held: &Held| matches!(held.belongs, Belongs::ToOpened(it, _) if it.earliest == opened.earliest);
        for held in self.held.iter_mut().filter(|held| is_same(held)) {
            if let Belongs::ToOpened(_, end) = held.belongs {
                held.belongs = Belongs::ToOpened(narrower, end);
            }
            for part in &mut held.parts {
                part.until = part.until.min(narrower.latest.plus_us(length_us));
            }
        }
        Some((opened.earliest, narrower))
    }

    /// What is to be told of grants that are over, or of which nothing is left to send or to hear.
    pub(super) fn settlings(&mut self, moment: Moment, occasion: Occasion) -> Vec<Settling> {
        let usable: Vec<bool> = self
            .held
            .iter()
            .map(|held| self.is_usable(held, moment))
            .collect();
        let open_until: Vec<LimitTime> = self
            .held
            .iter()
            .map(|held| self.open_until(held, moment.latest))
            .collect();
        let mut settlings = Vec::new();
        for (place, held) in self.held.iter_mut().enumerate() {
            let is_idle = held.unspent == 0 && held.flying == 0;
            let is_news = held.unspent > 0 || !held.parts.is_empty();
            let is_due = match occasion {
                Occasion::Closing => held.flying == 0,
                // What is still under way counts in the window that begins.
                Occasion::Entering => !usable[place],
                Occasion::Passing => is_idle || (!usable[place] && is_news),
            };
            if !is_due {
                continue;
            }
            let open = (held.flying > 0).then_some(Part {
                units: held.flying,
                until: open_until[place],
            });
            let mut parts = std::mem::take(&mut held.parts);
            // Others may know better that a window is not over.
            parts.retain(|part| part.until > moment.at);
            held.unspent = 0;
            settlings.push(Settling {
                grant: held.grant,
                parts,
                open,
            });
        }
        self.held
            .retain(|held| held.unspent > 0 || held.flying > 0 || !held.parts.is_empty());
        settlings
    }

    /// Until when calls out of a grant count that is over while they are under way.
    fn open_until(&self, held: &Held, now: LimitTime) -> LimitTime {
        let length_us = self.rule.kind.length_us().unwrap_or(0);
        match (held.belongs, self.window(now)) {
            (_, Some(window)) => window.end,
            (Belongs::ToOpened(opened, _), None) => opened.latest.plus_us(2 * length_us),
            _ => now.plus_us(self.transit_us() + length_us),
        }
    }

    /// A call was sent: when the next one is due, if they are spread evenly.
    pub(super) fn keep_beat(&mut self, cost: &Cost, moment: Moment) {
        let now = moment.at;
        let most = cost.most().max(1);
        let length_us = self.rule.kind.length_us();
        let slack_us = length_us.unwrap_or(0) / SLACK_PARTS;
        let (end, calls_left) = match (self.window(now), self.opened_now(), length_us) {
            (Some(window), _, _) => {
                // While it may be over, calls take of the next window too: they are better sent before.
                let sure_end = window.end.plus_us(-moment.latest.since_us(now));
                let end = if now < sure_end { sure_end } else { window.end };
                (end, self.left() / most)
            }
            (None, Some(opened), _) => (self.last_send(opened), self.left() / most),
            (None, None, Some(length_us)) => {
                let calls = i64::try_from(self.limit / most).unwrap_or(i64::MAX);
                self.beat.sent_regularly(now, length_us / calls.max(1));
                return;
            }
            (None, None, None) => return,
        };
        self.beat.sent(now, end.plus_us(-slack_us), calls_left);
    }

    /// The window that began with a call and is drawn from.
    fn opened_now(&self) -> Option<Opened> {
        self.held.iter().rev().find_map(|held| match held.belongs {
            Belongs::ToOpened(opened, _) => Some(opened),
            _ => None,
        })
    }

    /// Until when calls of others count of which nothing else is known.
    pub(super) fn others_until(&self, now: LimitTime) -> LimitTime {
        let length_us = self.rule.kind.length_us().unwrap_or(0);
        match (self.window(now), self.opened_now()) {
            (Some(window), _) => window.end,
            (None, Some(opened)) => opened.latest.plus_us(length_us),
            (None, None) => now.plus_us(length_us),
        }
    }

    /// Whether a report is about the present window. A reset that does not belong to it speaks of
    /// one that is over or of another clock.
    pub(super) fn speaks_of_now(&self, report: &LimitReport, now: LimitTime, edge_us: i64) -> bool {
        let Some(window) = self.window(now) else {
            return true;
        };
        let length_us = window.end.since_us(window.start);
        let tolerance_us = (length_us / 50).max(edge_us);
        let is_near = |reset: LimitTime| reset.since_us(window.end).abs() <= tolerance_us;
        report.reset.is_none_or(is_near) && self.opened == Some(window)
    }

    /// Units that were surely made and surely still count with the server.
    pub(super) fn counted_since(&self, now: LimitTime) -> u64 {
        let own = self.answered_since(now);
        let moment = Moment::certain(now);
        let is_fresh = self.held.iter().any(|held| self.is_usable(held, moment));
        own + if is_fresh { self.spent_by_others } else { 0 }
    }

    /// Units of this process that were answered and surely still count with the server.
    pub(super) fn answered_since(&self, now: LimitTime) -> u64 {
        let recent = self.still_counting(now);
        recent.map(|recent| recent.units).sum()
    }

    fn still_counting(&self, now: LimitTime) -> impl Iterator<Item = &Recent> {
        let length_us = self.rule.kind.length_us().unwrap_or(0);
        let since = match self.opened_now() {
            Some(opened) => opened.earliest,
            None => now.plus_us(1 - length_us),
        };
        self.recent
            .iter()
            .filter(move |recent| recent.sent >= since)
    }

    /// Units that the server had surely counted when it answered the call that was settled last: what was
    /// answered before that was sent, and the call itself. Whatever went beside it may have come later.
    pub(super) fn counted_before(&self, drawn: &Drawn, now: LimitTime) -> u64 {
        let beside = self.still_counting(now);
        let beside = beside.filter(|recent| recent.answered > drawn.sent);
        let beside: u64 = beside.map(|recent| recent.units).sum();
        let own = self.recent.back().filter(|own| own.sent == drawn.sent);
        let own = own.map_or(0, |own| own.units);
        let counted = self.counted_since(now).saturating_sub(beside);
        counted.saturating_add(own)
    }

    /// What is held does not suffice for a call, or cannot be used because of another budget: others
    /// may have a use for it.
    pub(super) fn let_go(&mut self, now: LimitTime) {
        for held in self.held.iter_mut().filter(|held| held.unspent > 0) {
            held.belongs = match held.belongs {
                Belongs::ToWindow(window, _) => Belongs::ToWindow(window, now),
                Belongs::Before(_) => Belongs::Before(now),
                Belongs::ToOpened(opened, _) => Belongs::ToOpened(opened, now),
            };
        }
    }

    /// A call was answered without a word on how much is used: a limit that only the server knows
    /// is felt for, a tenth at a time.
    pub(super) fn grow_unheard(&mut self, now: LimitTime) {
        if let WindowKind::Percent { .. } = self.rule.kind {
            let counted = self.counted_since(now);
            self.raise(self.limit.max(counted + counted / 10 + 1));
            // A call that is dearer than that may be tried now that this one is answered.
            self.dry_until = LimitTime(i64::MIN);
        }
    }

    /// As long as nothing is told of a limit that only the server knows, a call can be tried whatever it
    /// costs, provided that no other is under way: or one that costs more than a tenth of what was
    /// answered would wait until all of that is over.
    pub(super) fn make_room(&mut self, cost: &Cost, now: LimitTime) {
        if let WindowKind::Percent { .. } = self.rule.kind
            && !self.is_share_told
            && self.flying() == 0
        {
            self.raise(self.counted_since(now) + cost.most());
        }
    }

    /// All of a limit is used that only the server knows. If it was not used by us, others draw from
    /// it, and we leave it to them for a while.
    pub(super) fn hear_of_all_used(&mut self, counted: u64, now: LimitTime) {
        let length_us = self.rule.kind.length_us().unwrap_or(0);
        let ours = counted + self.flying() + self.others.saturating_sub(self.spent_by_others);
        if ours * 20 >= self.limit * 19 {
            self.dry_until = now.plus_us(length_us / STEPS_PER_WINDOW);
            return;
        }
        self.limit = self.limit.min(counted.max(1));
        self.shut_until = now.plus_us(length_us / 4);
    }

    /// The limit is known to be greater: whoever waited for the next beat waits no longer.
    pub(super) fn raise(&mut self, limit: u64) {
        if limit > self.limit {
            self.limit = limit;
            self.beat = Beat::default();
            self.dry_until = LimitTime(i64::MIN);
        }
    }

    /// Enters the present window of the calendar; what the server said of another is over.
    pub(super) fn enter(&mut self, now: LimitTime) -> bool {
        let window = self.window(now);
        if window.is_none() || window == self.opened {
            return false;
        }
        self.opened = window;
        self.limit = self.declared;
        self.word = ServerWord::default();
        self.beat = Beat::default();
        (self.others, self.drawn) = (0, 0);
        true
    }

    /// Until when nothing may be sent, if that is so: because the ledger or the server said so, or
    /// because calls of which the server's count may not tell yet could take all that it has left.
    /// Each of their answers may make room again.
    pub(super) fn shut_at(&self, moment: Moment, units: u64) -> Option<LimitTime> {
        let now = moment.at;
        if self.shut_until > now {
            return Some(self.shut_until);
        }
        if self.dry_until > now && self.usable(moment) < units {
            return Some(self.dry_until);
        }
        let window = self.window(now)?;
        let left = self
            .word
            .least_left
            .filter(|_| self.opened == Some(window))?;
        let silent = self.word.silent.saturating_sub(self.word.silent_reflected);
        (left <= self.flying().saturating_add(silent)).then_some(window.end)
    }
}

/// Notes a part. Where calls come back one by one, those of one step come back together, at its end.
fn add_part(parts: &mut Vec<Part>, units: u64, until: LimitTime, step_us: i64) {
    if units == 0 {
        return;
    }
    let over_us = until.0.rem_euclid(step_us.max(1));
    let until = match over_us {
        0 => until,
        _ => until.plus_us(step_us - over_us),
    };
    match parts.last_mut() {
        Some(last) if last.until == until => last.units += units,
        _ => parts.push(Part { units, until }),
    }
}
