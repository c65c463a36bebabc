import Linux

/// The dynamic libraries and symbols that an executable needs (elf(5), 64 bits, little endian).
struct ELFFile {
  /// Its DT_NEEDED entries.
  let needed: [String]
  /// Symbols that it takes from other files.
  let undefined: [String]
  /// A table of symbols that only debuggers need (`.symtab`).
  let hasSymbols: Bool

  struct Malformed: Error {}

  private struct Section {
    var type: UInt64
    var offset: Int
    var size: Int
    var link: Int
  }

  init(_ path: String) throws {
    let bytes = try readFile(path)
    func number(_ offset: Int, _ count: Int) throws -> UInt64 {
      guard offset >= 0, offset + count <= bytes.count else { throw Malformed() }
      return bytes[offset..<(offset + count)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    func text(_ offset: Int) throws -> String {
      guard bytes.indices.contains(offset) else { throw Malformed() }
      return String(decoding: bytes[offset...].prefix { $0 != 0 }, as: UTF8.self)
    }
    // ELF, 64 bits, little endian.
    guard bytes.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2, 1]) else { throw Malformed() }
    let table = Int(try number(40, 8))
    let size = Int(try number(58, 2))
    let sections = try (0..<Int(try number(60, 2))).map { index in
      let start = table + index * size
      return Section(
        type: try number(start + 4, 4), offset: Int(try number(start + 24, 8)),
        size: Int(try number(start + 32, 8)), link: Int(try number(start + 40, 4)))
    }
    func strings(of section: Section) throws -> Int {
      guard sections.indices.contains(section.link) else { throw Malformed() }
      return sections[section.link].offset
    }
    var needed: [String] = []
    var undefined: [String] = []
    for section in sections {
      switch section.type {
      case 6:  // SHT_DYNAMIC; DT_NEEDED is 1.
        for entry in stride(from: section.offset, to: section.offset + section.size, by: 16)
        where try number(entry, 8) == 1 {
          needed.append(try text(try strings(of: section) + Int(try number(entry + 8, 8))))
        }
      case 11:  // SHT_DYNSYM; section 0 is none.
        for entry in stride(from: section.offset, to: section.offset + section.size, by: 24)
        where try number(entry + 6, 2) == 0 {
          undefined.append(try text(try strings(of: section) + Int(try number(entry, 4))))
        }
      default: break
      }
    }
    hasSymbols = sections.contains { $0.type == 2 }
    self.needed = needed
    self.undefined = undefined.filter { !$0.isEmpty }
  }
}
