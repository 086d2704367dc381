//! Figures of clusters that real servers write.

mod running;
