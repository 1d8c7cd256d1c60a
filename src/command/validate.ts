import type { Policy, Resource } from '../../placement/index.ts';
import { assignmentCountersProblem, brokerCountersProblem, decidedCountersProblem } from './counters.ts';
import * as limits from './limits.ts';
import { idProblem, parseShard, quote, resourceNameProblem, textProblem } from './names.ts';
import { invalid, over, type Problem } from './problem.ts';
import type { Command } from './types.ts';

/** Checked before a command is proposed and again as it is applied; `null`: nothing is wrong. */
export function commandProblem(command: Command): Problem | null {
  switch (command.type) {
    case 'registerBroker':
      return registrationProblem(command.broker);
    case 'createResource':
      return resourceProblem(command.resource);
    case 'alterResource':
      return alterProblem(command);
    case 'placement':
      return (
        tooMany('rows of a placement entry', command.rows.length, limits.MAX_PLACEMENT_ROWS) ??
        firstProblem(command.rows, ({ shard, next }) => decidedCountersProblem(shard, next))
      );
    case 'report':
    case 'confirm':
      return tooMany(`shards of a ${command.type}`, command.shards.length, limits.MAX_REPORT_SHARDS);
    case 'setPolicy':
      return policyProblem(command.patch);
    case 'abandonShard':
      return parseShard(command.shard) === null ? invalid(notAShard(command.shard)) : null;
    case 'importPart':
      return importPartProblem(command);
    case 'importCommit':
      return (
        tooMany('parts of an import', command.parts, limits.MAX_IMPORT_PARTS) ?? policyProblem(command.policy)
      );
    case 'setLifecycle':
      return tooMany('brokers not heard', command.unheard?.length ?? 0, limits.MAX_BROKERS);
    case 'setDrain':
    case 'removeBroker':
    case 'deleteResource':
    case 'abortImport':
    case 'openSession':
      return null;
  }
}

export function resourceProblem(resource: Resource): Problem | null {
  return (
    wrap(resourceNameProblem(resource.name)) ??
    shardCountProblem(resource.name, resource.shards) ??
    replicationFactorProblem(resource.name, resource.replicationFactor) ??
    labelsProblem(`resource ${resource.name}`, resource.labels)
  );
}

/** The settings that a broker brings, registered or imported. */
export function brokerProblem(broker: {
  readonly id: string;
  readonly zone: string | null;
  readonly maxShards: number | null;
  readonly weight: number;
}): Problem | null {
  const { id, zone, maxShards, weight } = broker;
  const name = wrap(idProblem('broker id', id)) ?? (zone === null ? null : wrap(idProblem('zone', zone)));
  if (name !== null) return name;
  if (maxShards !== null && (maxShards < 0 || maxShards > limits.MAX_SHARD_CAP)) {
    return over(`broker ${id}: maxShards ${maxShards} must be 0 to ${limits.MAX_SHARD_CAP}`);
  }
  if (weight < 1 || weight > limits.MAX_WEIGHT) {
    return over(`broker ${id}: weight ${weight} must be 1 to ${limits.MAX_WEIGHT}`);
  }
  return null;
}

export function policyProblem(policy: Partial<Policy>): Problem | null {
  for (const key of ['maxConcurrentMoves', 'maxMovesPerBroker', 'maxConcurrentHandovers'] as const) {
    const value = policy[key];
    if (value === undefined || value === null) continue;
    if (value < 1 || value > limits.MAX_CONCURRENT_MOVES) {
      return over(`policy ${key} ${value} must be 1 to ${limits.MAX_CONCURRENT_MOVES}`);
    }
  }
  for (const key of POLICY_NUMBERS) {
    const value = policy[key];
    if (value !== undefined && (value < 0 || value > limits.MAX_POLICY_NUMBER)) {
      return over(`policy ${key} ${value} must be 0 to ${limits.MAX_POLICY_NUMBER}`);
    }
  }
  return policy.passIntervalMs === 0 ? over('policy passIntervalMs must be 1 or more') : null;
}

const POLICY_NUMBERS = [
  'restoreAfterMs',
  'moveTimeoutMs',
  'moveStallMs',
  'fenceTimeoutMs',
  'fenceMaxLagRecords',
  'settleMs',
  'passIntervalMs',
] as const;

export function labelsProblem(what: string, labels: Readonly<Record<string, string>>): Problem | null {
  for (const [key, value] of Object.entries(labels)) {
    if (key === '__proto__') return invalid(`${what}: a label cannot be named "__proto__"`);
    const bad = textProblem(`${what}: label`, key) ?? textProblem(`${what}: label ${quote(key)} with`, value);
    if (bad !== null) return invalid(bad);
  }
  const bytes = Buffer.byteLength(JSON.stringify(labels));
  return bytes <= limits.MAX_LABELS_BYTES
    ? null
    : over(`${what}: labels take ${bytes} bytes as JSON, at most ${limits.MAX_LABELS_BYTES} are allowed`);
}

export function shardCountProblem(name: string, shards: number): Problem | null {
  if (shards < 1) return invalid(`resource ${name}: ${shards} shards, at least 1 is needed`);
  return shards <= limits.MAX_SHARDS_PER_RESOURCE
    ? null
    : over(`resource ${name}: ${shards} shards, at most ${limits.MAX_SHARDS_PER_RESOURCE} are allowed`);
}

export function replicationFactorProblem(name: string, factor: number): Problem | null {
  if (factor < 1) return invalid(`resource ${name}: replicationFactor ${factor}, at least 1 is needed`);
  return factor <= limits.MAX_REPLICATION_FACTOR
    ? null
    : over(
        `resource ${name}: replicationFactor ${factor}, at most ${limits.MAX_REPLICATION_FACTOR} is allowed`,
      );
}

/** The message for a string that should name a shard. */
export function notAShard(shard: string): string {
  return `${quote(shard)} names no shard: write <kind>:<name>/<number>, as in stream:orders/3`;
}

function registrationProblem(broker: Extract<Command, { type: 'registerBroker' }>['broker']): Problem | null {
  const { id, addresses, storeId, starts } = broker;
  const problem = brokerProblem(broker) ?? labelsProblem(`broker ${id}`, broker.labels);
  if (problem !== null) return problem;
  const listeners = Object.entries(addresses);
  if (listeners.length > limits.MAX_ADDRESSES) {
    return over(`broker ${id}: ${listeners.length} addresses, at most ${limits.MAX_ADDRESSES} are allowed`);
  }
  for (const [name, address] of listeners) {
    const bad =
      idProblem(`broker ${id}: address name`, name) ?? textProblem(`broker ${id}: address ${name}`, address);
    if (bad !== null) return invalid(bad);
    const bytes = Buffer.byteLength(address);
    if (bytes < 1 || bytes > limits.MAX_ADDRESS_BYTES) {
      return over(
        `broker ${id}: address ${name} takes ${bytes} bytes, 1 to ${limits.MAX_ADDRESS_BYTES} are allowed`,
      );
    }
  }
  if (storeId === null) {
    return starts === null
      ? null
      : invalid(`broker ${id}: starts counts how often a store was opened: send its storeId too`);
  }
  const unprintable = textProblem(`broker ${id}: storeId`, storeId);
  if (unprintable !== null) return invalid(unprintable);
  if (starts !== null && (starts < 1 || starts > limits.MAX_COUNTER)) {
    return over(`broker ${id}: starts ${starts} must be 1 to ${limits.MAX_COUNTER}`);
  }
  const bytes = Buffer.byteLength(storeId);
  return bytes >= 1 && bytes <= limits.MAX_STORE_ID_BYTES
    ? null
    : over(`broker ${id}: storeId takes ${bytes} bytes, 1 to ${limits.MAX_STORE_ID_BYTES} are allowed`);
}

function alterProblem(command: Extract<Command, { type: 'alterResource' }>): Problem | null {
  const { name, shards, replicationFactor, labels = {} } = command;
  // `null` takes a label away.
  const set = Object.entries(labels).filter((entry): entry is [string, string] => entry[1] !== null);
  return (
    (shards === undefined ? null : shardCountProblem(name, shards)) ??
    (replicationFactor === undefined ? null : replicationFactorProblem(name, replicationFactor)) ??
    labelsProblem(`resource ${name}`, Object.fromEntries(set))
  );
}

/** Of its rows one by one; what they are together is known at the commit. */
function importPartProblem(part: Extract<Command, { type: 'importPart' }>): Problem | null {
  return (
    tooMany('part number of an import', part.part, limits.MAX_IMPORT_PARTS - 1) ??
    firstProblem(part.brokers, (row) => brokerProblem(row) ?? brokerCountersProblem(row)) ??
    firstProblem(part.resources, resourceProblem) ??
    firstProblem(part.assignments, assignmentCountersProblem)
  );
}

function firstProblem<T>(rows: readonly T[], problemOf: (row: T) => Problem | null): Problem | null {
  for (const row of rows) {
    const problem = problemOf(row);
    if (problem !== null) return problem;
  }
  return null;
}

function tooMany(what: string, count: number, limit: number): Problem | null {
  return count <= limit ? null : over(`${what}: ${count}, at most ${limit}`);
}

function wrap(message: string | null): Problem | null {
  return message === null ? null : invalid(message);
}
