//! What is measured of a replay: delays, losses, and how many posts wait.

use crate::policy::DAY_US;
use kittiwake_model::WorldTime;

/// Posts that were never collected count with their age, if they are older than this at the end.
const UNCOLLECTED_US: i64 = 2 * DAY_US;

/// The figures of one group of posts: of everybody, of a class, of the most spread.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// Posts made after the warm-up.
    pub posts: u64,
    /// Of these, those that were lost.
    pub lost: u64,
    pub mean_delay_s: f64,
    /// With lost posts as never collected: infinite if half of all are lost.
    pub median_delay_s: f64,
    pub p95_delay_s: f64,
    pub within_1h: f64,
    pub within_24h: f64,
    /// The mean number of posts that wait to be collected.
    pub waiting_mean: f64,
}

impl Figures {
    pub fn lost_share(&self) -> f64 {
        self.lost as f64 / self.posts.max(1) as f64
    }
}

/// Takes in what becomes of each post.
#[derive(Debug, Clone)]
pub(super) struct Measure {
    from: WorldTime,
    end: WorldTime,
    posts: u64,
    lost: u64,
    delays_us: Vec<i64>,
    waiting_us: f64,
}

impl Measure {
    pub(super) const fn new(from: WorldTime, end: WorldTime) -> Self {
        Self {
            from,
            end,
            posts: 0,
            lost: 0,
            delays_us: Vec::new(),
            waiting_us: 0.0,
        }
    }

    fn waited(&mut self, posted: WorldTime, until: WorldTime) {
        self.waiting_us += until.since_us(posted.max(self.from)).max(0) as f64;
    }

    pub(super) fn collected(&mut self, posted: WorldTime, at: WorldTime) {
        self.waited(posted, at);
        if posted >= self.from {
            self.posts += 1;
            self.delays_us.push(at.since_us(posted));
        }
    }

    pub(super) fn lost(&mut self, posted: WorldTime, at: WorldTime) {
        self.waited(posted, at);
        if posted >= self.from {
            self.posts += 1;
            self.lost += 1;
        }
    }

    pub(super) fn left(&mut self, posted: WorldTime) {
        self.waited(posted, self.end);
        let age_us = self.end.since_us(posted);
        if posted >= self.from && age_us > UNCOLLECTED_US {
            self.posts += 1;
            self.delays_us.push(age_us);
        }
    }

    /// How much of all posts was collected within so many seconds: from a minute to a hundred days.
    pub(super) fn distribution(&self) -> Vec<(f64, f64)> {
        const POINTS: u32 = 60;
        const FROM_S: f64 = 60.0;
        const TO_S: f64 = 100.0 * 86_400.0;
        let ratio = TO_S / FROM_S;
        let points =
            (0..=POINTS).map(|point| FROM_S * ratio.powf(f64::from(point) / f64::from(POINTS)));
        points
            .map(|delay_s| (delay_s, self.within((delay_s * 1e6) as i64)))
            .collect()
    }

    fn within(&self, limit_us: i64) -> f64 {
        let count = self.delays_us.partition_point(|delay| *delay <= limit_us);
        count as f64 / self.posts.max(1) as f64
    }

    pub(super) fn figures(&mut self) -> Figures {
        self.delays_us.sort_unstable();
        let sum_us: f64 = self.delays_us.iter().map(|delay| *delay as f64).sum();
        let counted = self.delays_us.len().max(1) as f64;
        Figures {
            posts: self.posts,
            lost: self.lost,
            mean_delay_s: sum_us / counted / 1e6,
            median_delay_s: self.quantile_s(0.5),
            p95_delay_s: self.quantile_s(0.95),
            within_1h: self.within(DAY_US / 24),
            within_24h: self.within(DAY_US),
            waiting_mean: self.waiting_us / self.end.since_us(self.from).max(1) as f64,
        }
    }

    /// A quantile over all posts; those that were lost come last.
    fn quantile_s(&self, share: f64) -> f64 {
        let place = (self.posts as f64 * share) as usize;
        let delay = self.delays_us.get(place);
        delay.map_or(f64::INFINITY, |delay_us| *delay_us as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_posts_are_never_collected_but_do_not_weigh_on_the_mean() {
        let hour = |hours: i64| WorldTime(hours * 3_600_000_000);
        let mut measure = Measure::new(hour(10), hour(110));
        measure.collected(hour(5), hour(12)); // before the warm-up ended: waits for 2 h of it
        measure.collected(hour(20), hour(21));
        measure.collected(hour(20), hour(25));
        measure.lost(hour(30), hour(50));
        measure.left(hour(40)); // 70 h old at the end
        measure.left(hour(100)); // too young to count
        let figures = measure.figures();
        assert_eq!((figures.posts, figures.lost), (4, 1));
        assert!((figures.mean_delay_s - (1.0 + 5.0 + 70.0) / 3.0 * 3_600.0).abs() < 1e-6);
        assert!((figures.median_delay_s - 70.0 * 3_600.0).abs() < 1e-6);
        assert!(figures.p95_delay_s.is_infinite());
        assert!((figures.within_1h - 0.25).abs() < 1e-12);
        assert!((figures.lost_share() - 0.25).abs() < 1e-12);
        let waited = 2.0 + 1.0 + 5.0 + 20.0 + 70.0 + 10.0;
        assert!((figures.waiting_mean - waited / 100.0).abs() < 1e-9);
    }
}
