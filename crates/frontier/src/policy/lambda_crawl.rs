//! LambdaCrawl (Kolobov and others, 2019): n missed changes cost the harmonic number H(n).
//!
//! The cost of crawling a source that changes at rate Δ at rate ρ is −μ·ln(ρ/(ρ + Δ)); the best
//! rates are ρ = (−Δ + √(Δ² + 4μΔ/Λ))/2, with Λ such that they use the budget up. Solved for Λ at
//! ρ = 1/τ this is what a visit after τ is worth, Λ(τ) = μΔτ²/(1 + Δτ): a market in which the price
//! of a call is Λ makes the very same visits and never has to be solved anew.

use super::rate::Watched;
use super::{Policy, Shared, State, Visit, elapsed_days, tag};
use kittiwake_model::WorldTime;

#[derive(Debug, Clone, Copy, Default)]
pub struct LambdaCrawl;

/// The Λ at which a source that waited for `elapsed_days` is due, with μ = 1.
pub fn index(rate_per_day: f64, elapsed_days: f64) -> f64 {
    // Divided by τ, so that the largest times do not overflow.
    let per_wait = 1.0 + rate_per_day * elapsed_days;
    rate_per_day * elapsed_days * (elapsed_days / per_wait)
}

/// The best rate of visits at a given Λ (the paper's Equation 8).
pub fn visits_per_day(rate_per_day: f64, importance: f64, lambda: f64) -> f64 {
    let inner = rate_per_day * rate_per_day + 4.0 * importance * rate_per_day / lambda;
    (inner.sqrt() - rate_per_day) / 2.0
}

/// The best rates of visits that together make `budget_per_day` visits, by bisection over Λ.
pub fn allocation(rates_per_day: &[f64], importances: &[f64], budget_per_day: f64) -> Vec<f64> {
    const STEPS: u32 = 200;
    let at = |lambda: f64| -> Vec<f64> {
        let pairs = rates_per_day.iter().zip(importances);
        pairs
            .map(|(rate, importance)| visits_per_day(*rate, *importance, lambda))
            .collect()
    };
    let (mut low, mut high) = (1e-12_f64, 1e12_f64);
    for _ in 0..STEPS {
        // Λ spans many powers of ten.
        let middle = (low * high).sqrt();
        if at(middle).iter().sum::<f64>() > budget_per_day {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(high)
}

impl Policy for LambdaCrawl {
    fn name(&self) -> &'static str {
        "lambda-crawl"
    }

    fn tag(&self) -> u8 {
        tag::LAMBDA_CRAWL
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
    fn the_rates_use_the_budget_up() {
        let rates = [0.1, 1.0, 5.0, 40.0];
        let visits = allocation(&rates, &[1.0; 4], 6.0);
        assert!((visits.iter().sum::<f64>() - 6.0).abs() < 1e-6);
        assert!(visits.windows(2).all(|pair| pair[0] < pair[1]));
        // More important, more often; nobody is given up.
        let weighted = allocation(&rates, &[100.0, 1.0, 1.0, 1.0], 6.0);
        assert!(weighted[0] > visits[0] && weighted[3] > 0.0);
    }

    #[test]
    fn the_index_is_the_multiplier_of_the_solved_problem() {
        for rate in [0.01, 0.3, 2.0, 50.0] {
            for lambda in [0.001, 0.2, 3.0] {
                let gap_days = 1.0 / visits_per_day(rate, 1.0, lambda);
                assert!((index(rate, gap_days) / lambda - 1.0).abs() < 1e-9);
            }
        }
    }
}
