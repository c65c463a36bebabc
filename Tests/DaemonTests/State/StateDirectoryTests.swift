import Lifecycle
import Supervision
import Testing

@testable import Daemon

@Suite("The directory of what outlives a daemon") struct StateDirectoryTests {
  @Test func `A later daemon may find an image if a file or a worker's record says so`() throws {
    let world = try AdapterWorld()
    let state = world.state
    let awake = try world.record()
    #expect(!state.mayHaveImages(of: []) && !state.mayHaveImages(of: [awake]))
    // Its volume isn't mounted.
    let asleep = try world.record("db", .hibernated) { $0.imagePath = state.image(of: "db") }
    #expect(state.mayHaveImages(of: [awake, asleep]))
    try world.scratch.write("state/images/web.image", "memory")
    #expect(state.mayHaveImages(of: [awake]))
  }
}
