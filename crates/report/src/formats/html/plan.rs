//! What to do about all findings together, in order.

use std::io;

use pgclinic_model::document::PlanStep;
use pgclinic_model::plan::Safety;

use super::escape::Esc;
use crate::words::{self, count};

pub(super) fn write(steps: &[PlanStep], out: &mut dyn io::Write) -> io::Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    out.write_all(
        b"<section class=\"card remedies\" id=plan>\n<h2>What to do, in this order</h2>\n<ol>\n",
    )?;
    for step in steps {
        one(step, out)?;
    }
    out.write_all(b"</ol>\n</section>\n")
}

fn one(step: &PlanStep, out: &mut dyn io::Write) -> io::Result<()> {
    let safety = words::safety(step.safety);
    writeln!(
        out,
        "<li><strong>{}</strong> <span class=\"safety {}\">{safety}</span> {}.",
        Esc(&step.name),
        class_of(step.safety),
        Esc(&step.why)
    )?;
    if !step.relations.is_empty() {
        writeln!(
            out,
            "<p class=about>For {}</p>",
            Esc(words::plan_relations(step))
        )?;
    }
    for command in &step.commands {
        writeln!(
            out,
            "<pre class=command><code>{}</code></pre>",
            Esc(command)
        )?;
    }
    if step.commands_omitted > 0 {
        writeln!(
            out,
            "<p class=about>and {} more of the kind</p>",
            count(step.commands_omitted)
        )?;
    }
    out.write_all(b"</li>\n")
}

/// The colour of a safety.
pub(super) fn class_of(safety: Safety) -> &'static str {
    match safety {
        Safety::Exact => "good",
        Safety::Lossy => "warn",
        Safety::ShowOnly => "plain",
    }
}
