import type { Assignment, Resource } from '../../placement/index.ts';

export interface Skew {
  readonly name: string;
  readonly brokers: readonly string[];
  /** How many shards each of `brokers` leads. */
  readonly leaders: readonly number[];
  readonly replicationFactor: number;
  /** Brokers that hold copies; all unless given. */
  readonly among?: readonly string[];
}

type FileResource = Pick<Resource, 'kind' | 'name' | 'shards' | 'replicationFactor'>;
type FileAssignment = Pick<Assignment, 'shard' | 'leader' | 'replicas'>;

/** A stream whose leaders lie exactly as asked, its followers dealt round. */
export function skewed(skew: Skew): { resource: FileResource; assignments: FileAssignment[] } {
  const among = skew.among ?? skew.brokers;
  const assignments: FileAssignment[] = [];
  for (const [index, leader] of skew.brokers.entries()) {
    for (let n = 0; n < (skew.leaders[index] ?? 0); n++) {
      const shard = `stream:${skew.name}/${assignments.length}`;
      const others = among.filter((broker) => broker !== leader);
      const turned = others.map((_, k) => others[(k + assignments.length) % others.length] ?? leader);
      assignments.push({ shard, leader, replicas: [leader, ...turned.slice(0, skew.replicationFactor - 1)] });
    }
  }
  const { name, replicationFactor } = skew;
  return { resource: { kind: 'stream', name, shards: assignments.length, replicationFactor }, assignments };
}

/** A cluster file as `import` reads it. */
export function clusterFile(
  brokers: readonly string[],
  streams: readonly ReturnType<typeof skewed>[],
  policy: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    version: 1,
    brokers: brokers.map((id) => ({ id })),
    resources: streams.map(({ resource }) => resource),
    assignments: streams.flatMap(({ assignments }) => assignments),
    policy,
  };
}
