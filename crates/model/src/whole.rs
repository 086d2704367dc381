//! Whole numbers of what was computed.

/// The whole part of a number: 0 for what is none or negative, the largest for what is larger.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast keeps to the limits"
)]
pub fn whole(number: f64) -> u64 {
    number as u64
}
