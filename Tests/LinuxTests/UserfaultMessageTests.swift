import Testing

@testable import Linux

@Suite struct `Messages of the service for userfaultfd` {
  @Test func `A reply is read as it was written`() {
    let replies: [UserfaultReply] =
      [.done, .failed(1), .failed(.max)]
      + UserfaultReply.Refusal.allCases.map(UserfaultReply.refused)
    for reply in replies {
      #expect(UserfaultReply(reply.text) == reply)
      #expect(reply.text.utf8.count <= UserfaultReply.maxLength)
    }
    for request in UserfaultRequest.allCases {
      #expect(request.rawValue.utf8.count <= UserfaultReply.maxLength)
    }
  }

  @Test(arguments: [
    "", " ", "done ", "done 1", "failed", "failed 0", "failed -1", "failed +1", "failed 01",
    "failed 99999999999", "failed 1 2", "refused", "refused ", "refused x", "DONE", "done\0",
  ])
  func `Any other text isn't a reply`(text: String) {
    #expect(UserfaultReply(text) == nil)
  }

  @Test func `A socket that doesn't exist means that the service isn't running`() {
    let error = #expect(throws: UserfaultService.Failure.self) {
      _ = try UserfaultService.openDevice(at: "/nowhere/userfault.sock")
    }
    #expect(error == .absent)
  }
}
