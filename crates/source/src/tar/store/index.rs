//! Where each block lies in the file: two bytes a block for its form, and one offset for every 64
//! blocks.
//!
//! ```text
//! group 0: offset of block 0,  form of block 0, form of block 1, … form of block 63
//! group 1: offset of block 64, form of block 64, …
//! ```
//!
//! A block lies behind the one before it, so that its offset is that of its group and the bytes of
//! those between. That is 34 MiB of memory for a TiB.

/// Blocks that share an offset.
const GROUP_BLOCKS: usize = 64;

/// What stands in the index for blocks that are not packed.
const ZEROS: u16 = 0;
const AS_IT_IS: u16 = u16::MAX;

/// How a block is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// All of it is zeros, and nothing is kept.
    Zeros,
    /// In so many bytes, neither 0 nor 65,535.
    Packed(u16),
    /// Unchanged.
    AsItIs,
}

impl Form {
    fn of_code(code: u16) -> Self {
        match code {
            ZEROS => Form::Zeros,
            AS_IT_IS => Form::AsItIs,
            len => Form::Packed(len),
        }
    }

    fn code(self) -> u16 {
        match self {
            Form::Zeros => ZEROS,
            Form::AsItIs => AS_IT_IS,
            Form::Packed(len) => len,
        }
    }

    /// Bytes of the file that it takes.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Form::Zeros => 0,
            Form::AsItIs => super::BLOCK as u64,
            Form::Packed(len) => u64::from(len),
        }
    }
}

#[derive(Debug)]
struct Group {
    /// Where its first block lies.
    offset: u64,
    codes: [u16; GROUP_BLOCKS],
}

/// The place and form of each block in the file of a store.
#[derive(Default, Debug)]
pub(super) struct Index {
    groups: Vec<Group>,
    blocks: usize,
    end: u64,
}

impl Index {
    /// Blocks that are kept.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks as u64
    }

    /// Bytes of the file, which is where the next block begins.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Adds the next block.
    pub(super) fn push(&mut self, form: Form) {
        let at = self.blocks % GROUP_BLOCKS;
        if at == 0 {
            self.groups.push(Group {
                offset: self.end,
                codes: [ZEROS; GROUP_BLOCKS],
            });
        }
        let group = self.groups.last_mut();
        if let Some(code) = group.and_then(|group| group.codes.get_mut(at)) {
            *code = form.code();
        }
        self.blocks = self.blocks.saturating_add(1);
        self.end = self.end.saturating_add(form.bytes());
    }

    /// Where a block lies and how; nothing for one that is not kept yet.
    pub(super) fn find(&self, block: u64) -> Option<(u64, Form)> {
        let block = usize::try_from(block).ok()?;
        if block >= self.blocks {
            return None;
        }
        let group = self.groups.get(block / GROUP_BLOCKS)?;
        let (before, from) = group.codes.split_at_checked(block % GROUP_BLOCKS)?;
        let before = before.iter().map(|code| Form::of_code(*code).bytes());
        let offset = group.offset.saturating_add(before.sum());
        Some((offset, Form::of_code(*from.first()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_behind_each_other() {
        let form = |block: u64| match block % 5 {
            0 => Form::Zeros,
            1 => Form::AsItIs,
            _ => Form::Packed(u16::try_from(block * 37 % 60_000 + 1).expect("small")),
        };
        let (mut index, mut offset) = (Index::default(), 0);
        for block in 0..1000 {
            assert_eq!(index.find(block), None, "it comes later");
            index.push(form(block));
            assert_eq!(index.find(block), Some((offset, form(block))));
            offset += form(block).bytes();
        }
        assert_eq!((index.blocks(), index.end()), (1000, offset));
        assert_eq!(index.find(0), Some((0, Form::Zeros)), "it is still there");
        assert_eq!(index.find(u64::MAX), None);
    }

    #[test]
    fn a_tebibyte_takes_34_mebibytes() {
        let groups = (1usize << 40) / super::super::BLOCK / GROUP_BLOCKS;
        assert_eq!(groups * size_of::<Group>(), 34 << 20);
    }
}
