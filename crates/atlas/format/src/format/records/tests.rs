//! Records come back from their bytes as they went.

use super::*;

#[test]
fn records_come_back_as_they_went() {
    let record = LevelRecord {
        level: 1,
        form: 2,
        classes: 3,
        period: 64,
        probe_count: 12,
        base_first: 5,
        base_count: 6,
        noise_cycles: 41.5,
        core_base_first: 8,
        code_first: 7,
        probe_lines: [9; 256],
    };
    assert_eq!(LevelRecord::from_bytes(&record.to_bytes()), record);
    let entry = super::super::SectionEntry { kind: 4, offset: 64, length: 1 << 40 };
    assert_eq!(super::super::SectionEntry::from_bytes(&entry.to_bytes()), entry);
    let index = PageIndexHeader { kind: 1, keyed_by: 2, blocks: 3, positions: 4, first_frame: 512 };
    assert_eq!(PageIndexHeader::from_bytes(&index.to_bytes()), index);
    let plane = PlaneHeader { kind: 1, exceptions: 77 };
    assert_eq!(PlaneHeader::from_bytes(&plane.to_bytes()), plane);
    let code = CodeRecord { canonical: 777, share: 0.25 };
    assert_eq!(CodeRecord::from_bytes(&code.to_bytes()), code);
    let words = WordsHeader { shift: 10, bits: 6 };
    assert_eq!(WordsHeader::from_bytes(&words.to_bytes()), words);
    let matrix = MatrixHeader { kind: 1, tag: 3, rows: 288, columns: 16 };
    assert_eq!(MatrixHeader::from_bytes(&matrix.to_bytes()), matrix);
    let cell = CellRecord { values: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], n: 99 };
    assert_eq!(CellRecord::from_bytes(&cell.to_bytes()), cell);
    let mut lines = LinesRecord { level: 1, core: 258, frame: 1 << 33, cycles: [3.5; 64] };
    lines.cycles[63] = 9.0;
    assert_eq!(LinesRecord::from_bytes(&lines.to_bytes()), lines);
    assert_eq!(LinesRecord::key(&lines.to_bytes()), (1, 258, 1 << 33));
}
