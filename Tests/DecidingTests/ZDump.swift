import Glibc
import Simulation
import Testing
@Test func zdump() throws {
  guard let p = getenv("SUGGEST_DUMP") else { return }
  let path = String(cString: p)
  let n = getenv("SUGGEST_N").flatMap { Int(String(cString: $0)) } ?? 12
  let h = getenv("SUGGEST_H").flatMap { Int64(String(cString: $0)) } ?? 48
  let trace = TraceGenerator(pattern: .daily, workers: n, length: h * 3_600_000, seed: 5, usesPerHour: 4).trace()
  let j = try FleetJournal(trace, policy: served { $0.hibernate.after = .seconds(1800) }, memory: .gigabytes(8))
  mkdir(path, 0o700)
  let f = fopen(path + "/00000001.jsonl", "w")
  for s in j.segments { _ = fwrite(s, 1, s.count, f) }
  fclose(f)
}
