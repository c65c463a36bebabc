import Testing

@testable import Checksum

@Suite("A checksum") struct CRC32Tests {
  @Test func `The checksum by Castagnoli's polynomial is the one of iSCSI (RFC 3720, B.4)`() {
    #expect(CRC32.castagnoli.checksum(of: [UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
    #expect(CRC32.castagnoli.checksum(of: [UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
    #expect(CRC32.castagnoli.checksum(of: Array(0..<32)) == 0x46DD_794E)
    #expect(CRC32.castagnoli.text(of: "123456789".utf8) == "e3069283")
  }

  @Test func `The checksum of IEEE 802.3 is the one of zlib`() {
    #expect(CRC32.ieee.text(of: "123456789".utf8) == "cbf43926")
    #expect(CRC32.ieee.checksum(of: Array("The quick brown fox".utf8)) == 0xB74574DE)
  }

  @Test func `A checksum as a text always has eight digits`() {
    #expect(CRC32.ieee.text(of: "".utf8) == "00000000")
    #expect(CRC32.castagnoli.text(of: "".utf8) == "00000000")
  }

  @Test(
    "A checksum of eight bytes at a time, or by the processor, is that of single bits",
    arguments: 0...41)
  func slices(length: Int) {
    let bytes = (0..<length).map { _ in UInt8.random(in: 0...255) }
    let castagnoli: UInt32 = 0x82F6_3B78
    for (checksum, polynomial) in [
      (CRC32.castagnoli, castagnoli), (.ieee, 0xEDB8_8320),
      (CRC32(polynomial: castagnoli, usesInstruction: false), castagnoli),
    ] {
      var sum = UInt32.max
      for byte in bytes {
        sum ^= UInt32(byte)
        for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ polynomial : sum >> 1 }
      }
      #expect(checksum.checksum(of: bytes) == ~sum)
      #expect(checksum.checksum(of: ([7] + bytes)[1...]) == ~sum, "a slice that isn't aligned")
      #expect(checksum.checksum(of: AnySequence(bytes)) == ~sum, "one by one")
    }
  }
}
