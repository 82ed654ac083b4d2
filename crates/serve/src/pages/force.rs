//! Where the nodes of a picture stand: linked ones near one another, all others apart. The same graph
//! gives the same picture, and the work is bounded.

/// Pairs of nodes that one layout may look at.
const PAIRS_MAX: usize = 12_000_000;
const STEPS_MAX: usize = 300;
/// The angle by which a spiral spreads points evenly.
const GOLDEN_ANGLE: f64 = 2.399_963_229_728_653;

/// A place in a picture whose sides are 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// Places `count` nodes; `edges` are pairs of their numbers, and those that name none are left out.
pub(crate) fn layout(count: usize, edges: &[(usize, usize)]) -> Vec<Point> {
    let edges: Vec<(usize, usize)> = edges
        .iter()
        .copied()
        .filter(|(from, to)| from != to && *from < count && *to < count)
        .collect();
    let degrees = degrees(count, &edges);
    let mut points = spiral(&degrees);
    if count < 2 {
        return points;
    }
    let pairs = count * (count - 1) / 2;
    let steps = (PAIRS_MAX / pairs).clamp(1, STEPS_MAX);
    let apart = 1.0 / (count as f64).sqrt();
    let mut pushes = vec![Point { x: 0.0, y: 0.0 }; count];
    let mut repulsion = Repulsion::new(count);
    for step in 0..steps {
        let reach = 0.12 * (1.0 - step as f64 / steps as f64) + 0.001;
        pushes.fill(Point { x: 0.0, y: 0.0 });
        repulsion.push(&points, apart, &mut pushes);
        attract(&points, &edges, &degrees, apart, &mut pushes);
        for (point, push) in points.iter_mut().zip(&pushes) {
            // A little weight towards the middle holds together what no edge joins.
            let x = push.x - point.x * 0.6;
            let y = push.y - point.y * 0.6;
            let length = x.hypot(y).max(1e-9);
            let stride = length.min(reach);
            point.x += x / length * stride;
            point.y += y / length * stride;
        }
    }
    fit(&mut points);
    points
}

/// How many edges each node has.
fn degrees(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut degrees = vec![0_usize; count];
    for (from, to) in edges {
        degrees[*from] += 1;
        degrees[*to] += 1;
    }
    degrees
}

/// Everybody on a spiral, the best connected in the middle.
fn spiral(degrees: &[usize]) -> Vec<Point> {
    let count = degrees.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|node| (std::cmp::Reverse(degrees[*node]), *node));
    let mut points = vec![Point { x: 0.0, y: 0.0 }; count];
    for (rank, node) in order.into_iter().enumerate() {
        let radius = 0.5 * ((rank as f64 + 0.5) / count as f64).sqrt();
        let angle = rank as f64 * GOLDEN_ANGLE;
        points[node] = Point {
            x: radius * angle.cos(),
            y: radius * angle.sin(),
        };
    }
    points
}

/// Everybody pushes everybody away. This is nearly all of the work: columns of single numbers, each written in
/// its own place, are what a processor adds up several at a time.
#[derive(Debug)]
struct Repulsion {
    x: Vec<f32>,
    y: Vec<f32>,
    push_x: Vec<f32>,
    push_y: Vec<f32>,
}

impl Repulsion {
    fn new(count: usize) -> Self {
        let column = || vec![0.0; count];
        Self {
            x: column(),
            y: column(),
            push_x: column(),
            push_y: column(),
        }
    }

    fn push(&mut self, points: &[Point], apart: f64, pushes: &mut [Point]) {
        for (place, point) in points.iter().enumerate() {
            (self.x[place], self.y[place]) = (point.x as f32, point.y as f32);
        }
        self.push_x.fill(0.0);
        self.push_y.fill(0.0);
        for point in points {
            self.push_from(point.x as f32, point.y as f32);
        }
        let force = apart * apart;
        let columns = self.push_x.iter().zip(&self.push_y);
        for (push, (x, y)) in pushes.iter_mut().zip(columns) {
            push.x += f64::from(*x) * force;
            push.y += f64::from(*y) * force;
        }
    }

    /// What stands in one place pushes all others, and itself by nothing.
    fn push_from(&mut self, from_x: f32, from_y: f32) {
        let places = self.x.iter().zip(&self.y);
        let pushes = self.push_x.iter_mut().zip(&mut self.push_y);
        for ((x, y), (push_x, push_y)) in places.zip(pushes) {
            let (x, y) = (x - from_x, y - from_y);
            let square = (x * x + y * y).max(1e-6);
            *push_x += x / square;
            *push_y += y / square;
        }
    }
}

/// Edges pull, those between the well connected less: else they would all fall together.
fn attract(
    points: &[Point],
    edges: &[(usize, usize)],
    degrees: &[usize],
    apart: f64,
    pushes: &mut [Point],
) {
    for (from, to) in edges {
        let (x, y) = (
            points[*to].x - points[*from].x,
            points[*to].y - points[*from].y,
        );
        let least = degrees[*from].min(degrees[*to]) as f64;
        let pull = x.hypot(y) / apart * 0.8 / least.max(1.0);
        pushes[*from].x += x * pull;
        pushes[*from].y += y * pull;
        pushes[*to].x -= x * pull;
        pushes[*to].y -= y * pull;
    }
}

/// Stretches the places to fill the picture.
fn fit(points: &mut [Point]) {
    let span = |value: fn(&Point) -> f64, points: &[Point]| {
        let least = points.iter().map(value).fold(f64::INFINITY, f64::min);
        let most = points.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
        (least, (most - least).max(1e-9))
    };
    let (left, width) = span(|it| it.x, points);
    let (top, height) = span(|it| it.y, points);
    for point in points {
        point.x = (point.x - left) / width;
        point.y = (point.y - top) / height;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(one: Point, other: Point) -> f64 {
        (one.x - other.x).hypot(one.y - other.y)
    }

    #[test]
    fn the_same_graph_gives_the_same_picture() {
        let edges: Vec<(usize, usize)> = (1..50).map(|node| (node, node / 3)).collect();
        assert_eq!(layout(50, &edges), layout(50, &edges));
    }

    #[test]
    fn two_groups_stand_apart() {
        let mut edges = Vec::new();
        for group in [0, 10] {
            for one in 0..10 {
                edges.extend((one + 1..10).map(|other| (group + one, group + other)));
            }
        }
        edges.push((0, 10));
        let points = layout(20, &edges);
        let mean = |pairs: &[(usize, usize)]| {
            let total: f64 = pairs
                .iter()
                .map(|(a, b)| distance(points[*a], points[*b]))
                .sum();
            total / pairs.len() as f64
        };
        let within = mean(&[(1, 2), (3, 4), (5, 6), (11, 12), (13, 14)]);
        let between = mean(&[(1, 11), (2, 12), (3, 13), (4, 14), (5, 15)]);
        assert!(between > 2.0 * within, "{between} {within}");
    }

    #[test]
    fn every_place_is_inside_the_picture_whatever_the_edges_say() {
        for count in [0, 1, 2, 3, 300] {
            let edges = [(0, 0), (0, 1), (1, 0), (usize::MAX, 0), (5, 4_000)];
            let points = layout(count, &edges);
            assert_eq!(points.len(), count);
            for point in points {
                assert!((-1e-9..=1.0 + 1e-9).contains(&point.x), "{point:?}");
                assert!((-1e-9..=1.0 + 1e-9).contains(&point.y), "{point:?}");
            }
        }
    }
}
