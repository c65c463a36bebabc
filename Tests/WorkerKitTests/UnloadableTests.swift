import Synchronization
import Testing

@testable import WorkerKit

@Suite(.timeLimit(.minutes(10))) struct UnloadableTests {
  private struct Screen: Sendable {
    let draft: String
    let counter: Loads
    @Unloadable var photo: [UInt8]

    init(_ worker: Worker) {
      draft = "unsaved"
      let loads = Loads()
      counter = loads
      _photo = Unloadable(worker: worker) { loads.photo() }
    }
  }

  private final class Loads: Sendable {
    let count = Mutex(0)
    func photo() -> [UInt8] {
      count.withLock { $0 += 1 }
      return Array(repeating: 7, count: 1000)
    }
  }

  @Test func `A value loads on the first access, unloads on a warning and loads again`() async {
    let worker = Worker(socketPath: nil)
    let screen = Screen(worker)
    let count = { screen.counter.count.withLock { $0 } }
    #expect(!screen.$photo.isLoaded)
    #expect(count() == 0)
    #expect(screen.photo.count == 1000)
    #expect(screen.photo.count == 1000)
    #expect(count() == 1)
    await worker.simulateMemoryWarning()
    #expect(!screen.$photo.isLoaded)
    #expect(screen.draft == "unsaved")
    #expect(screen.photo.count == 1000)
    #expect(count() == 2)
    await worker.simulateEnteringBackground()
    #expect(!screen.$photo.isLoaded)
  }

  @Test func `A value that is in use isn't unloaded`() async throws {
    let worker = Worker(socketPath: nil)
    let screen = Screen(worker)
    await screen.$photo.use { photo in
      await worker.simulateMemoryWarning()
      #expect(screen.$photo.isLoaded)
      #expect(!screen.$photo.unload())
      #expect(photo.count == 1000)
    }
    #expect(screen.$photo.isLoaded)
    #expect(screen.$photo.use { $0.count } == 1000)
    struct Failure: Error {}
    #expect(throws: Failure.self) { try screen.$photo.use { _ in throw Failure() } }
    #expect(screen.$photo.unload())
    #expect(screen.$photo.unload())
  }

  @Test
  func `An unloadable value works without a property wrapper, and its copies share the value`()
    async
  {
    let worker = Worker(socketPath: nil)
    let loads = Loads()
    let photo = Unloadable(worker: worker) { loads.photo() }
    let copy = photo
    #expect(photo.value == copy.value)
    #expect(loads.count.withLock { $0 } == 1)
    await worker.simulateMemoryWarning()
    #expect(!copy.isLoaded)
  }

  private struct Settings {
    @Unloadable var index = Array(0..<100)
  }

  @Test func `An initial value is evaluated when it is first needed`() {
    let settings = Settings()
    #expect(!settings.$index.isLoaded)
    #expect(settings.index.count == 100)
    settings.$index.unload()
    #expect(settings.index.last == 99)
  }

  @Test func `Threads load a value once, although it is unloaded again and again`() async throws {
    let worker = Worker(socketPath: nil)
    let screen = Screen(worker)
    let wrong = Log<Int>()
    try await onThreads(4) { thread in
      for _ in 0..<5000 {
        if thread == 0 {
          screen.$photo.unload()
        } else if screen.$photo.use({ photo in
          photo.allSatisfy { $0 == 7 } && screen.$photo.isLoaded
        }) {
          continue
        } else {
          wrong.append(thread)
        }
      }
    }
    #expect(wrong.all == [])
  }
}
