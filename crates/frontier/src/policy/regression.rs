//! Least squares with weights that are not negative, learnt as observations come in.

/// A system of normal equations of `N` features.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Regression<const N: usize> {
    products: [[f64; N]; N],
    targets: [f64; N],
}

impl<const N: usize> Default for Regression<N> {
    fn default() -> Self {
        Self {
            products: [[0.0; N]; N],
            targets: [0.0; N],
        }
    }
}

impl<const N: usize> Regression<N> {
    /// Numbers that [`Self::numbers`] gives.
    pub(super) const NUMBERS: usize = N * N + N;

    /// Takes in one observation with its variance.
    pub(super) fn add(&mut self, features: &[f64; N], target: f64, variance: f64) {
        let weight = 1.0 / variance;
        if !weight.is_finite() || features.iter().any(|feature| !feature.is_finite()) {
            return;
        }
        for (row, feature) in features.iter().enumerate() {
            let weighted = feature * weight;
            self.targets[row] += weighted * target;
            for (product, other) in self.products[row].iter_mut().zip(features) {
                *product += weighted * other;
            }
        }
    }

    /// Lets what is old weigh less.
    pub(super) fn decay(&mut self, factor: f64) {
        for value in self.products.iter_mut().flatten().chain(&mut self.targets) {
            *value *= factor;
        }
    }

    /// The best weights, held near `prior` as if that had been observed `held` times. None is negative
    /// if `is_positive`.
    pub(super) fn solve(&self, prior: &[f64; N], held: f64, is_positive: bool) -> [f64; N] {
        const SWEEPS: usize = 300;
        let mut weights = *prior;
        for _ in 0..SWEEPS {
            let mut change: f64 = 0.0;
            for row in 0..N {
                let others: f64 = (0..N)
                    .filter(|column| *column != row)
                    .map(|column| self.products[row][column] * weights[column])
                    .sum();
                let best = (self.targets[row] - others + held * prior[row])
                    / (self.products[row][row] + held);
                let best = if is_positive { best.max(0.0) } else { best };
                change = change.max((best - weights[row]).abs());
                weights[row] = best;
            }
            if change < 1e-7 {
                break;
            }
        }
        weights
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        self.products.iter().flatten().chain(&self.targets).copied()
    }

    pub(super) fn from_numbers(mut numbers: impl Iterator<Item = f64>) -> Self {
        let mut read = Self::default();
        for value in read.products.iter_mut().flatten().chain(&mut read.targets) {
            *value = numbers.next().unwrap_or(0.0);
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_that_made_the_data_are_found_again() {
        let mut regression = Regression::<3>::default();
        for step in 0..200 {
            let step = f64::from(step);
            let features = [1.0, (step * 0.7).sin() + 1.5, (step * 0.31).cos() + 1.2];
            let target = 0.5 * features[0] + 2.0 * features[1];
            regression.add(&features, target, 1.0);
        }
        let weights = regression.solve(&[0.0, 0.0, 1.0], 1e-6, true);
        for (weight, truth) in weights.iter().zip([0.5, 2.0, 0.0]) {
            assert!((weight - truth).abs() < 0.02, "{weights:?}");
        }
        let read = Regression::<3>::from_numbers(regression.numbers());
        assert_eq!(read, regression);
    }

    #[test]
    fn without_data_the_prior_stands() {
        let weights = Regression::<2>::default().solve(&[0.25, 1.0], 1.0, true);
        assert!((weights[0] - 0.25).abs() < 1e-9 && (weights[1] - 1.0).abs() < 1e-9);
        let mut regression = Regression::<2>::default();
        regression.add(&[f64::NAN, 1.0], 1.0, 1.0);
        regression.add(&[1.0, 1.0], 1.0, 0.0);
        assert_eq!(regression, Regression::default());
    }
}
