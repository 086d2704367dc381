//! What a handful of runs can honestly say. Pure functions of numbers and a seed.
//!
//! A decision leans on the differences inside blocks ([`paired`]): what slows a whole block falls
//! out. Six blocks or more are judged by ranks ([`hodges_lehmann`]), fewer by Student's
//! distribution with what control runs say of the spread ([`student`]). Either interval errs at
//! most as often as it says when both sides are alike, and [`stopping`] shares that right to err
//! among the looks, so that stopping early is no cheating.
//!
//! Everywhere, values are finite and a sample may be too small: `None` says so, never a wide guess.
#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    reason = "numbers of our own: no byte of a file comes here"
)]

pub mod bootstrap;
pub mod equivalence;
pub mod hodges_lehmann;
mod interval;
pub mod needed;
pub mod noise;
pub mod paired;
pub mod quantile;
mod ranks;
pub mod spread;
pub mod stopping;
pub mod student;
pub mod theil_sen;

pub use interval::{Estimate, Interval};

/// A count as a number to calculate with; exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "no sample has 2^53 values")]
fn number(count: usize) -> f64 {
    count as f64
}

/// A number's whole part as a place in a list; 0 below zero, the largest place beyond it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates"
)]
fn place(number: f64) -> usize {
    number.floor() as usize
}

#[cfg(test)]
mod trial;
#[cfg(test)]
mod truths;
