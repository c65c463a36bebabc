import AsyncHTTPClient
import ContainerPlan
import Control

/// A container, and the worker that the daemon has for it.
public struct ListedContainer: Codable, Hashable, Sendable {
  public var runtime: String
  public var id: String
  public var name: String
  public var pid: Int32
  /// The policy. It is nil for the machine's policy, and if the labels don't ask for adoption.
  public var policy: String?
  /// The errors in its labels.
  public var problems: [String]
  /// The worker's name; nil if the daemon doesn't have the container.
  public var worker: String?
  public var state: String?
  public var footprint: Int64?
  public var saved: Int64?
}

/// The result of `dormouse-containers list`.
public struct ContainerList: Sendable {
  public private(set) var containers: [ListedContainer] = []
  /// Sentences about runtimes and a daemon that don't answer.
  public private(set) var troubles: [String] = []

  public static func make(
    _ settings: WatchSettings, http: HTTPClient
  ) async -> ContainerList {
    var list = ContainerList()
    var containers: [Container] = []
    for runtime in settings.runtimes {
      do throws(EngineError) {
        containers += try await runtime.client(http).containers()
      } catch { list.troubles.append("\(runtime): \(error)") }
    }
    var workers: [Int32: WorkerReport] = [:]
    do throws(ControlError) {
      let daemon = AdoptingDaemon(path: settings.socket, isNamed: settings.isNamed)
      for worker in try await daemon.poll().workers {
        if let pid = worker.pid { workers[pid] = worker }
      }
    } catch { list.troubles.append("\(error)") }
    list.containers = containers.sorted { ($0.name, $0.id) < ($1.name, $1.id) }.map {
      ListedContainer($0, workers[$0.pid])
    }
    return list
  }

  /// The list as a table.
  public var text: String {
    let head = ["CONTAINER", "RUNTIME", "POLICY", "WORKER", "STATE", "FOOTPRINT", "SAVED"]
    let rows = [head] + containers.map(\.cells)
    let widths = head.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      let cells = row.enumerated().map { column, cell in
        let room = String(repeating: " ", count: widths[column] - cell.count)
        return column >= 5 ? room + cell : cell + room
      }
      return cells.joined(separator: "  ") + "\n"
    }.joined()
  }
}

extension ListedContainer {
  init(_ container: Container, _ worker: WorkerReport?) {
    let reading = LabelReading(container)
    self.init(
      runtime: container.runtime, id: container.id, name: container.name, pid: container.pid,
      policy: worker?.policy ?? reading.wish?.policy, problems: reading.problems,
      worker: worker?.name, state: worker?.state, footprint: worker?.footprint,
      saved: worker?.saved)
  }

  fileprivate var cells: [String] {
    [
      escaped(name), runtime, escaped(policy ?? "-"), worker ?? "-", state ?? "not adopted",
      footprint.map(sizeText) ?? "-", saved.map(sizeText) ?? "-",
    ]
  }
}
