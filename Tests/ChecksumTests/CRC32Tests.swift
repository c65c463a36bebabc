import Checksum
import Testing

@Suite("A checksum") struct CRC32Tests {
  @Test("The checksum by Castagnoli's polynomial is the one of iSCSI (RFC 3720, B.4)")
  func castagnoli() {
    #expect(CRC32.castagnoli.checksum(of: [UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
    #expect(CRC32.castagnoli.checksum(of: [UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
    #expect(CRC32.castagnoli.checksum(of: Array(0..<32)) == 0x46DD_794E)
    #expect(CRC32.castagnoli.text(of: "123456789".utf8) == "e3069283")
  }

  @Test("The checksum of IEEE 802.3 is the one of zlib")
  func ieee() {
    #expect(CRC32.ieee.text(of: "123456789".utf8) == "cbf43926")
    #expect(CRC32.ieee.checksum(of: Array("The quick brown fox".utf8)) == 0xB74574DE)
  }

  @Test("A checksum as a text always has eight digits")
  func text() {
    #expect(CRC32.ieee.text(of: "".utf8) == "00000000")
    #expect(CRC32.castagnoli.text(of: "".utf8) == "00000000")
  }
}
