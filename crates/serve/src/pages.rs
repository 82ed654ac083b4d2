mod chart;
mod force;
mod words;
