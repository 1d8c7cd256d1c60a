import { z } from 'zod';
import { DEFAULT_LIMITS, checkedLimits } from '../raft/index.ts';
import { parseAddress } from './address.ts';
import { idProblem, quote } from './command/index.ts';
import { DEFAULT_BROKER_TIMINGS, checkTimings, type BrokerTimings } from './control/index.ts';
import { EvenkeelError } from './errors.ts';
import { LOG_LEVELS, type LogLevel } from './log-levels.ts';

/** What one node runs with. Times in ms. */
export interface ServeConfig {
  readonly nodeId: string;
  readonly clusterId: string;
  /** Peer address (`host:port`) by node id, this node's own among them. After the first boot the log's configuration stands instead. */
  readonly members: ReadonlyMap<string, string>;
  /** Brokers, RPC and HTTP. */
  readonly listen: string;
  readonly peerListen: string;
  readonly dataDir: string;
  readonly initialClusterState: 'new' | 'existing';
  readonly logLevel: LogLevel;
  readonly raft: { readonly heartbeatMs: number; readonly electionTimeoutMs: number };
  readonly broker: BrokerTimings;
}

/** One option of `serve`: a flag and its environment variable. A flag wins. */
export interface ServeOption {
  /** Of the parsed flags (text, or true for a switch), as commander names it. */
  readonly key: string;
  /** `--node-id`. */
  readonly flag: string;
  /** What stands for the value in the help; `null`: a switch. */
  readonly value: string | null;
  readonly environment: string;
  readonly description: string;
  readonly fallback: string | null;
}

const MAX_MEMBERS = 15;
const MAX_MS = 3_600_000;

export const SERVE_OPTIONS: readonly ServeOption[] = [
  option('node-id', 'id', "this node's id"),
  option('cluster-id', 'id', 'the cluster it belongs to'),
  option('members', 'list', 'peer addresses of all nodes: n1=host:port,n2=host:port,...'),
  option('listen', 'host:port', 'for brokers, RPC and HTTP', '127.0.0.1:7401'),
  option('peer-listen', 'host:port', 'for the other nodes; as --members has it unless given', ''),
  option('data-dir', 'path', 'where log, term and snapshots are kept'),
  option(
    'initial-cluster-state',
    'state',
    'new or existing; matters on an empty data directory only',
    'existing',
  ),
  option('insecure', null, 'listen beyond loopback without security'),
  option('log-level', 'level', LOG_LEVELS.join(', '), 'info'),
  option(
    'election-timeout-ms',
    'ms',
    'silence after which a node stands for leader',
    DEFAULT_LIMITS.electionTimeoutMs,
  ),
  option('raft-heartbeat-ms', 'ms', "a leader's heartbeats to the other nodes", DEFAULT_LIMITS.heartbeatMs),
  option('heartbeat-ms', 'ms', "a broker's heartbeats", DEFAULT_BROKER_TIMINGS.heartbeatMs),
  option(
    'lease-ms',
    'ms',
    'how long a broker may serve after an answered heartbeat',
    DEFAULT_BROKER_TIMINGS.leaseMs,
  ),
  option('expiry-ms', 'ms', 'silence after which a broker is down', DEFAULT_BROKER_TIMINGS.expiryMs),
  option(
    'margin-ms',
    'ms',
    'waited on top before its shards are given away',
    DEFAULT_BROKER_TIMINGS.marginMs,
  ),
];

function option(
  name: string,
  value: string | null,
  description: string,
  fallback: string | number | null = null,
): ServeOption {
  return {
    key: name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    flag: `--${name}`,
    value,
    environment: `EVENKEEL_${name.toUpperCase().replaceAll('-', '_')}`,
    description,
    fallback: fallback === null ? null : String(fallback),
  };
}

const id = z.string().superRefine((text, context) => {
  const problem = idProblem('it', text);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});
const address = z.string().superRefine((text, context) => {
  if (parseAddress(text) === null)
    context.addIssue({ code: 'custom', message: `${quote(text)} is not host:port` });
});
const milliseconds = z
  .string()
  .regex(/^[1-9]\d{0,6}$/, 'it must be a whole number of milliseconds above 0')
  .transform(Number)
  .refine((value) => value <= MAX_MS, `it must be at most ${MAX_MS}`);

const serveSchema = z.object({
  nodeId: id,
  clusterId: id,
  members: z.string().transform(parseMembers),
  listen: address,
  peerListen: z.union([z.literal(''), address]),
  dataDir: z.string().min(1, 'it must name a directory'),
  initialClusterState: z.enum(['new', 'existing']),
  insecure: z.enum(['true', 'false', '1', '0', '']).transform((text) => text === 'true' || text === '1'),
  logLevel: z.enum(LOG_LEVELS),
  electionTimeoutMs: milliseconds,
  raftHeartbeatMs: milliseconds,
  heartbeatMs: milliseconds,
  leaseMs: milliseconds,
  expiryMs: milliseconds,
  marginMs: milliseconds,
});

/**
 * Reads the options of `serve` from parsed flags, then the environment, then the defaults. Throws
 * `invalid_argument`, which names the option and what is wrong, or `insecure_listen`.
 */
export function readServeConfig(
  flags: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>,
): ServeConfig {
  const given = Object.fromEntries(
    SERVE_OPTIONS.map((each) => [each.key, valueOf(each, flags, environment)]),
  );
  const parsed = serveSchema.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const at = SERVE_OPTIONS.find(({ key }) => key === issue?.path[0]);
    throw invalid(`${at?.flag} (${at?.environment}): ${issue?.message}`);
  }
  const { nodeId, members, peerListen, insecure, raftHeartbeatMs, electionTimeoutMs, ...rest } = parsed.data;
  const { heartbeatMs, leaseMs, expiryMs, marginMs, ...plain } = rest;
  const own = members.get(nodeId);
  if (own === undefined) throw invalid(`--members does not name this node, ${quote(nodeId)}`);
  const config: ServeConfig = {
    ...plain,
    nodeId,
    members,
    peerListen: peerListen === '' ? own : peerListen,
    raft: { heartbeatMs: raftHeartbeatMs, electionTimeoutMs },
    broker: { heartbeatMs, leaseMs, expiryMs, marginMs },
  };
  checkRelations(config);
  if (!insecure) checkLoopback(config);
  return config;
}

function valueOf(
  option: ServeOption,
  flags: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const flag = flags[option.key];
  if (typeof flag === 'string') return flag;
  if (typeof flag === 'boolean') return String(flag);
  const value = environment[option.environment] ?? option.fallback ?? (option.value === null ? '' : null);
  if (value === null)
    throw invalid(`${option.flag} (${option.environment}) is required: ${option.description}`);
  return value;
}

/** The relations between limits, asserted before anything starts. */
function checkRelations(config: ServeConfig): void {
  try {
    checkedLimits(config.raft);
    checkTimings(config.broker);
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : String(error));
  }
}

function checkLoopback(config: ServeConfig): void {
  for (const [flag, given] of [
    ['--listen', config.listen],
    ['--peer-listen', config.peerListen],
  ] as const) {
    const host = parseAddress(given)?.host ?? '';
    if (host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)) continue;
    throw new EvenkeelError(
      'insecure_listen',
      `${flag} ${given} can be reached from other machines and nothing guards it: listen on 127.0.0.1, or give ` +
        '--insecure if the network is trusted',
    );
  }
}

function parseMembers(text: string, context: z.RefinementCtx): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  const problem = (message: string): typeof z.NEVER => {
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  };
  for (const part of text.split(',')) {
    const [member = '', at = '', ...more] = part.trim().split('=');
    const wrong = idProblem('node id', member);
    if (wrong !== null) return problem(wrong);
    const parsed = more.length === 0 ? parseAddress(at) : null;
    if (parsed === null || parsed.port === 0) return problem(`${quote(part)} is not id=host:port`);
    if (members.has(member)) return problem(`${quote(member)} is named twice`);
    if ([...members.values()].includes(at)) return problem(`${quote(at)} is given to two nodes`);
    members.set(member, at);
  }
  if (members.size > MAX_MEMBERS) return problem(`${members.size} nodes, at most ${MAX_MEMBERS} are allowed`);
  return members;
}

function invalid(message: string): EvenkeelError {
  return new EvenkeelError('invalid_argument', message);
}
