import CLinux
import TestSupport
import Testing

@testable import Hibernation

/// The addresses at which pages belong after their process has moved and dropped some.
struct PageLayoutTests {
  private func message(_ event: Int, _ a: UInt64, _ b: UInt64, _ c: UInt64 = 0)
    -> FaultJournal.Message
  {
    var message = FaultJournal.Message()
    message.event = UInt8(event)
    (message.a, message.b, message.c) = (a, b, c)
    return message
  }

  @Test func `Moves are applied one after the other, and dropped memory stays dropped`() throws {
    let layout = try PageLayout(replaying: [
      [message(CLINUX_UFFD_REMAP, 0x1000, 0x9000, 0x2000)],
      [message(CLINUX_UFFD_REMOVE, 0xa000, 0xb000)],
      [message(CLINUX_UFFD_REMAP, 0x9000, 0x20000, 0x2000)],
    ])
    #expect(layout.currentAddress(of: 0x1000) == 0x20000)
    #expect(layout.currentAddress(of: 0x2000) == nil)
    #expect(layout.currentAddress(of: 0x3000) == 0x3000)
    #expect(layout.original(of: 0x20000) == 0x1000)
    #expect(layout.original(of: 0x21000) == nil)
    #expect(layout.original(of: 0x1000) == nil)
  }

  @Test(
    "The move that made room for a simultaneous one is applied first, in any order of reports"
  )
  func atOnce() throws {
    let away = message(CLINUX_UFFD_REMAP, 0x1000, 0x9000, 0x1000)
    let into = message(CLINUX_UFFD_REMAP, 0x5000, 0x1000, 0x1000)
    let unmapped = message(CLINUX_UFFD_UNMAP, 0x1000, 0x2000)
    for batch in [[away, into, unmapped], [into, away, unmapped], [unmapped, into, away]] {
      let layout = try PageLayout(replaying: [batch])
      #expect(layout.currentAddress(of: 0x1000) == 0x9000)
      #expect(layout.currentAddress(of: 0x5000) == 0x1000)
      #expect(layout.original(of: 0x1000) == 0x5000)
    }
  }

  /// Linux before 6.15 reports ten pages for `mremap(0x10000, ten, five, MREMAP_FIXED, 0x40000)`.
  @Test func `A move that shortens memory leaves what is behind its new place alone`() throws {
    let layout = try PageLayout(replaying: [
      [
        message(CLINUX_UFFD_UNMAP, 0x40000, 0x45000),
        message(CLINUX_UFFD_REMAP, 0x10000, 0x40000, 0xa000),
        message(CLINUX_UFFD_UNMAP, 0x15000, 0x1a000), message(CLINUX_UFFD_UNMAP, 0x10000, 0x15000),
      ]
    ])
    #expect(layout.currentAddress(of: 0x14000) == 0x44000)
    #expect(layout.currentAddress(of: 0x15000) == nil)
    #expect(layout.currentAddress(of: 0x45000) == 0x45000)
    #expect(layout.original(of: 0x45000) == 0x45000)
  }

  @Test func `The order of a move and another change counts if both concern the same place`() {
    let move = message(CLINUX_UFFD_REMAP, 0x1000, 0x9000, 0x1000)
    func counts(_ later: FaultJournal.Message, _ isMapped: Bool = true) -> Bool {
      PageLayout.mayPrecede(later, move, isMapped: { _ in isMapped })
    }
    #expect(!counts(message(CLINUX_UFFD_REMAP, 0x5000, 0x20000, 0x1000)), "other memory")
    #expect(!counts(message(CLINUX_UFFD_REMAP, 0x5000, 0x1000, 0x1000)), "where room was made")
    #expect(!counts(message(CLINUX_UFFD_UNMAP, 0x1000, 0x2000)), "the move's own")
    #expect(!counts(message(CLINUX_UFFD_REMOVE, 0x9000, 0xa000)), "sent before it is done")
    #expect(counts(message(CLINUX_UFFD_REMAP, 0x1000, 0x20000, 0x1000)))
    #expect(counts(message(CLINUX_UFFD_REMAP, 0x5000, 0x9000, 0x1000)))
    // Memory that has left the destination was there before the move exactly if something is there
    // now.
    for later in [
      message(CLINUX_UFFD_REMAP, 0x9000, 0x20000, 0x1000),
      message(CLINUX_UFFD_UNMAP, 0x8000, 0xa000),
    ] {
      #expect(counts(later))
      #expect(!counts(later, false))
    }
  }

  @Test("Memory at a move's destination is dropped, and the memory that is moved there stays")
  func destination() throws {
    let into = message(CLINUX_UFFD_REMAP, 0x5000, 0x1000, 0x1000)
    let unmapped = message(CLINUX_UFFD_UNMAP, 0x1000, 0x3000)
    for batch in [[into, unmapped], [unmapped, into]] {
      let layout = try PageLayout(replaying: [batch])
      #expect(layout.currentAddress(of: 0x1000) == nil)
      #expect(layout.currentAddress(of: 0x2000) == nil)
      #expect(layout.currentAddress(of: 0x5000) == 0x1000)
    }
    // In a later batch the result is different.
    let layout = try PageLayout(replaying: [[into], [unmapped]])
    #expect(layout.currentAddress(of: 0x5000) == nil)
  }

  @Test func `A run of pages has the same place as each of its pages alone`() throws {
    var random = TestRandom(seed: 11)
    for _ in 0..<400 {
      var batches: [[FaultJournal.Message]] = []
      for _ in 0..<Int.random(in: 0...6, using: &random) {
        let (a, b) = (
          UInt64.random(in: 0..<64, using: &random) << 12,
          UInt64.random(in: 0..<64, using: &random) << 12
        )
        let length = UInt64.random(in: 1..<12, using: &random) << 12
        batches.append(
          Bool.random(using: &random)
            ? [message(CLINUX_UFFD_UNMAP, a, a + length)]
            : [message(CLINUX_UFFD_REMAP, a, b, length)])
      }
      let layout = try PageLayout(replaying: batches)
      var page: UInt64 = 0
      while page < 80 << 12 {
        let run = layout.currentRun(from: page, (80 << 12) - page)
        try #require(run.length > 0 && run.length % 4096 == 0)
        for offset in stride(from: 0, to: run.length, by: 4096) {
          #expect(
            layout.currentAddress(of: page + offset) == run.address.map { $0 + offset },
            "\(batches)")
        }
        page += run.length
      }
    }
  }

  @Test(
    "Addresses that no process can have are an error, and never a trap",
    arguments: [
      (CLINUX_UFFD_REMAP, UInt64.max - 0xfff, UInt64(0x1000), UInt64(0x2000)),
      (CLINUX_UFFD_REMAP, 0x1000, .max - 0xfff, 0x2000), (CLINUX_UFFD_REMAP, 0, 0, .max - 0xfff),
      (CLINUX_UFFD_REMAP, 0x1001, 0x2000, 0x1000), (CLINUX_UFFD_REMOVE, 0x2000, 0x1000, 0),
      (CLINUX_UFFD_UNMAP, 0, .max, 0),
    ])
  func impossible(event: Int, a: UInt64, b: UInt64, c: UInt64) {
    #expect(throws: PageLayout.Impossible.self) {
      try PageLayout(replaying: [[message(event, a, b, c)]])
    }
  }

  @Test func `Changes that no correct program can have made are an error`() {
    #expect(throws: PageLayout.Ambiguous.self) {
      try PageLayout(replaying: [
        [
          message(CLINUX_UFFD_REMAP, 0x1000, 0x9000, 0x1000),
          message(CLINUX_UFFD_REMAP, 0x5000, 0x9000, 0x1000),
        ]
      ])
    }
    #expect(throws: PageLayout.Ambiguous.self) {
      try PageLayout(replaying: [
        [
          message(CLINUX_UFFD_REMAP, 0x1000, 0x9000, 0x1000),
          message(CLINUX_UFFD_REMAP, 0x9000, 0x1000, 0x1000),
        ]
      ])
    }
  }
}
