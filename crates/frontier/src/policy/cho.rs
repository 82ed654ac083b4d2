//! The freshness of Cho and Garcia-Molina (2003), and of Azar and others (2018).
//!
//! A subject is fresh as long as nothing was posted since the visit; the share of fresh subjects is
//! to be as large as it can be. With posts at rate λ the share of time that is stale costs
//! C(τ) = 1 − e^(−λτ), so that a visit after τ is worth ∫ s dC(s) = 1/λ − (τ + 1/λ)·e^(−λτ). That
//! is never more than 1/λ: whoever posts too often is given up, which is why it does not suit posts.

use super::rate::Watched;
use super::{Policy, Shared, State, Visit, elapsed_days, tag};
use kittiwake_model::WorldTime;

#[derive(Debug, Clone, Copy, Default)]
pub struct Cho;

/// 1/λ − (τ + 1/λ)·e^(−λτ), which is Azar's (1/λ)·\[1 − (1 + λτ)·e^(−λτ)\] with equal requests.
pub fn index(rate_per_day: f64, elapsed_days: f64) -> f64 {
    if rate_per_day <= 0.0 {
        return 0.0;
    }
    let mean_days = 1.0 / rate_per_day;
    let is_fresh = (-rate_per_day * elapsed_days).exp();
    if is_fresh == 0.0 {
        return mean_days;
    }
    mean_days - (elapsed_days + mean_days) * is_fresh
}

/// The rate from visits at equal gaps that tell only whether anything changed, corrected for bias:
/// −ln((n − X + 0.5)/(n + 0.5))/gap.
pub fn rate_of_changes(visits: u32, changed: u32, gap_days: f64) -> f64 {
    let (visits, changed) = (f64::from(visits), f64::from(changed.min(visits)));
    -((visits - changed + 0.5) / (visits + 0.5)).ln() / gap_days
}

impl Policy for Cho {
    fn name(&self) -> &'static str {
        "cho"
    }

    fn tag(&self) -> u8 {
        tag::CHO
    }

    fn observe(&self, shared: &mut Shared, state: &mut State, visit: &Visit<'_>) {
        Watched::observe(shared, state, visit, self.tag());
    }

    fn index(&self, shared: &Shared, state: &State, now: WorldTime) -> f64 {
        let watched = Watched::read(state, self.tag());
        index(watched.per_day(shared), elapsed_days(state, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_too_fast_is_given_up() {
        // However long they wait, the fast one is worth less than the slow one.
        assert!(index(100.0, 1_000.0) < index(1.0, 1.0));
        assert!((index(4.0, 1e9) - 0.25).abs() < 1e-12);
        assert!((index(2.0, 0.0)).abs() < 1e-12);
    }

    #[test]
    fn the_index_is_the_integral_of_the_renewal_argument() {
        let (rate, elapsed, steps) = (1.7, 0.9, 100_000);
        let width = elapsed / f64::from(steps);
        let integral: f64 = (0..steps)
            .map(|step| (f64::from(step) + 0.5) * width)
            .map(|at| at * rate * (-rate * at).exp() * width)
            .sum();
        assert!((index(rate, elapsed) - integral).abs() < 1e-8);
    }

    #[test]
    fn the_rate_of_changes_has_no_infinities() {
        // Ten visits a day apart, six of which found a change: the paper's biased estimator is 0.916.
        assert!((rate_of_changes(10, 6, 1.0) - (10.5_f64 / 4.5).ln()).abs() < 1e-12);
        assert!(rate_of_changes(10, 10, 1.0).is_finite());
        assert!(rate_of_changes(10, 0, 1.0).abs() < 1e-12);
    }
}
