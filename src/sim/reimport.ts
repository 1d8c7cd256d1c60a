import type { Assignment, Broker } from '../../placement/index.ts';
import { exportCluster } from '../cluster-file/index.ts';
import type { Plane } from '../plane.ts';

/** Exports a cluster and imports it over itself, as `evenkeel export` and `import --overwrite` do; all times in between moved by so much. */
export async function reimport(plane: Plane, byMs: number, deadlineMs: number): Promise<void> {
  const steps = exportCluster(plane.state, plane.clusterTimeMs());
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  const { brokers, resources, assignments, policy, timeMs = plane.clusterTimeMs() } = step.value;
  const { value } = await plane.propose({ type: 'openSession' }, { deadlineMs });
  const importId = String((value as { session: number }).session);
  const rows = { brokers: brokers.map(moved), resources, assignments: assignments.map(movedRow) };
  await plane.propose({ type: 'importPart', importId, part: 0, ...rows }, { deadlineMs });
  const whole = { parts: 1, policy, overwrite: true, timeMs: at(timeMs) };
  await plane.propose({ type: 'importCommit', importId, ...whole }, { deadlineMs });

  function at<T extends number | null>(ms: T): T {
    return (ms === null ? null : Math.max(0, ms + byMs)) as T;
  }
  function moved(broker: Broker): Broker {
    return { ...broker, registeredAtMs: at(broker.registeredAtMs), downSinceMs: at(broker.downSinceMs) };
  }
  function movedRow(row: Assignment): Assignment {
    if (row.move === null) return row;
    const { startedAtMs, progressAtMs } = row.move;
    return { ...row, move: { ...row.move, startedAtMs: at(startedAtMs), progressAtMs: at(progressAtMs) } };
  }
}
