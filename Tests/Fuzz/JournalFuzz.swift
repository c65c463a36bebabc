import CLinux
import Glibc
import Linux

@testable import Hibernation

extension FuzzTarget {
  /// Reads the input as a fault journal: 64 bytes of header, then slots. It is read first
  /// unchanged, then with events and addresses that a kernel could have written.
  static let faultJournal = FuzzTarget(
    read: { bytes in
      adopt(bytes)
      adopt(plausible(bytes))
    }, seeds: journalSeeds)
}

private let headerLength = 72
private let slotLength = 32

private func adopt(_ bytes: [UInt8]) {
  let seals = Int32(CLINUX_SEAL_SHRINK) | Int32(CLINUX_SEAL_GROW) | 1
  let file = Descriptor(
    owning: clinux_sealed_memory_file("fuzz", Int64(FaultJournal.length), seals))
  guard fchmod(file.raw, 0o600) == 0 else { return }
  let header = Array(bytes.prefix(headerLength))
  let slots = Array(bytes.dropFirst(headerLength).prefix(Int(FaultJournal.length) - 4096))
  guard pwrite(file.raw, header, header.count, 0) == header.count,
    pwrite(file.raw, slots, slots.count, 4096) == slots.count
  else { return }
  let words = stride(from: 0, to: header.count - 7, by: 8).map { number(header, $0, 8) }
  _ = FaultJournal.Header(words, isPrivateFile: true)
  // A journal that is refused is the right answer to most inputs.
  guard let journal = try? FaultJournal.adopt(file) else { return }
  _ = (journal.phase, journal.hasBegunChildren, journal.isHalfFull, journal.inode)
  let (closed, open) = journal.batches
  // A layout that is refused is a right answer, too.
  if let layout = try? PageLayout(replaying: closed + [open]) { check(layout, open) }
  for later in open {
    for move in open { _ = PageLayout.mayPrecede(later, move) { !$0.isEmpty } }
  }
  journal.markQuiet()
  journal.forksAreDone()
  precondition(journal.openForks == 0)
  journal.reset(to: .idle)
}

/// Checks that the answer for a run of pages is the answer for each of its pages.
private func check(_ layout: PageLayout, _ messages: [FaultJournal.Message]) {
  _ = (layout.isIdentity, layout.hasMoves)
  let edges = messages.flatMap { [$0.a, $0.b, $0.a &+ $0.c, $0.b &+ $0.c] }.filter { $0 < 1 << 47 }
  for address in edges.prefix(64) + [0, 0x10000] {
    let run = layout.currentRun(from: address, 1 << 20)
    precondition((1...(1 << 20)).contains(run.length))
    precondition(run.address == layout.currentAddress(of: address))
    let last = run.length - 1
    precondition(layout.currentAddress(of: address + last) == run.address.map { $0 &+ last })
    _ = layout.original(of: address)
  }
}

private func plausible(_ bytes: [UInt8]) -> [UInt8] {
  var bytes = bytes
  let events = [
    CLINUX_UFFD_REMAP, CLINUX_UFFD_REMOVE, CLINUX_UFFD_UNMAP, CLINUX_UFFD_FORK,
    CLINUX_UFFD_FORK_DONE, 0xf4,
  ]
  for slot in stride(from: headerLength, to: bytes.count - slotLength + 1, by: slotLength) {
    bytes[slot] = UInt8(events[Int(bytes[slot]) % events.count])
    for word in 1...3 {
      // There are few different pages, so that changes meet.
      put(number(bytes, slot + 8 * word, 8) % 64 * 4096 + 0x10000, 8, slot + 8 * word, &bytes)
    }
  }
  return bytes
}

private func journalSeeds() throws -> [String: [UInt8]] {
  var seeds: [String: [UInt8]] = [:]
  for count in [1, 4, 12] {
    var bytes = [UInt8](repeating: 0, count: headerLength + count * slotLength)
    let header = FaultJournal.Header(
      process: ProcessIdentity(pid: 17, startTime: 170), userfault: 5, inode: 99)
    for (index, word) in [UInt64(17), 170, UInt64(header.userfault), 99, 2, 0].enumerated() {
      put(word, 8, 16 + 8 * index, &bytes)
    }
    put(0x4655_4144_4f52_4d31, 8, 0, &bytes)
    put(3, 8, 8, &bytes)
    for slot in 0..<count {
      let offset = headerLength + slot * slotLength
      bytes[offset] = UInt8(slot % 6)
      for word in 1...3 { put(UInt64(slot * 5 + word * 3), 8, offset + 8 * word, &bytes) }
    }
    seeds["\(count)"] = bytes
  }
  return seeds
}
