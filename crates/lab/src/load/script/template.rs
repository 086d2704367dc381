//! One SQL command with the places of its variables.

/// Text and slots in turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Template {
    /// `texts[0] slots[0] texts[1] slots[1] … texts[n]`
    texts: Vec<String>,
    slots: Vec<usize>,
}

impl Template {
    pub(super) fn push_text(&mut self, text: &str) {
        if self.texts.len() == self.slots.len() {
            self.texts.push(String::new());
        }
        if let Some(last) = self.texts.last_mut() {
            last.push_str(text);
        }
    }

    pub(super) fn push_slot(&mut self, slot: usize) {
        self.push_text("");
        self.slots.push(slot);
    }

    pub(super) fn is_blank(&self) -> bool {
        self.slots.is_empty() && self.texts.iter().all(|text| text.trim().is_empty())
    }

    /// The variables in order, once for each place.
    pub(crate) fn slots(&self) -> &[usize] {
        &self.slots
    }

    /// The command with `$1`, `$2` … in the places of its variables.
    pub(crate) fn with_parameters(&self) -> String {
        self.fill(|position, out| {
            out.push('$');
            out.push_str(&(position + 1).to_string());
        })
    }

    /// The command with numbers in the places of its variables.
    pub(crate) fn with_values(&self, values: &[i64]) -> String {
        self.fill(|position, out| {
            let slot = self.slots.get(position).copied().unwrap_or_default();
            out.push_str(&values.get(slot).copied().unwrap_or_default().to_string());
        })
    }

    fn fill(&self, place: impl Fn(usize, &mut String)) -> String {
        let mut out = String::new();
        for (position, text) in self.texts.iter().enumerate() {
            out.push_str(text);
            if position < self.slots.len() {
                place(position, &mut out);
            }
        }
        out.trim().to_owned()
    }
}
