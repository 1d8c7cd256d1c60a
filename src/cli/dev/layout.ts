import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Broker } from '../../../placement/index.ts';
import { EvenkeelError } from '../../errors.ts';
import type { CliEnvironment } from '../environment.ts';
import { readClusterFile } from '../transfer.ts';
import { checkFree, choosePorts, type NodePorts } from './ports.ts';

const DEFAULT_NODES = 3;
const MAX_NODES = 7;
const DEFAULT_BROKERS = 3;
const MAX_BROKERS = 32;
const DEFAULT_PORT = 7401;
const LAYOUT_FILE = 'dev.json';

export type DevBroker = Pick<Broker, 'id' | 'zone' | 'maxShards' | 'weight'>;

/** Which processes there are, and where they listen. Kept in the data directory: nodes find each other by it. */
export interface Layout {
  readonly ports: readonly NodePorts[];
  readonly brokers: readonly DevBroker[];
  /** The cluster file to begin with. */
  readonly cluster: string;
}

export interface LayoutOptions {
  readonly nodes?: number;
  readonly brokers?: number;
  readonly cluster?: string;
  readonly port?: number;
}

const layoutSchema = z.strictObject({
  ports: z.array(z.strictObject({ client: z.int(), peer: z.int() })).min(1),
  brokers: z.array(
    z.strictObject({
      id: z.string(),
      zone: z.string().nullable(),
      maxShards: z.int().nullable(),
      weight: z.int(),
    }),
  ),
  cluster: z.string(),
});

/** The layout of a data directory that was used before; `null`: it was not. */
export async function keptLayout(directory: string, options: LayoutOptions): Promise<Layout | null> {
  const path = join(directory, LAYOUT_FILE);
  const text = await readFile(path, 'utf8').catch(() => null);
  if (text === null) return null;
  const given = (['nodes', 'brokers', 'cluster', 'port'] as const).filter(
    (key) => options[key] !== undefined,
  );
  if (given.length > 0) {
    const message = `${directory} holds a cluster already: ${given.map((key) => `--${key}`).join(', ')} cannot change it`;
    throw new EvenkeelError('invalid_argument', message);
  }
  const layout = readLayout(text, path);
  await checkFree(layout.ports);
  return layout;
}

function readLayout(text: string, path: string): Layout {
  try {
    return layoutSchema.parse(JSON.parse(text));
  } catch {
    throw new EvenkeelError('corrupt', `${path} is not as dev wrote it: begin with another --data-dir`);
  }
}

/** What the options ask for, checked. */
export async function newLayout(
  environment: CliEnvironment,
  options: LayoutOptions & { readonly cluster: string },
): Promise<Layout> {
  const { cluster } = options;
  const nodes = inRange('--nodes', options.nodes ?? DEFAULT_NODES, MAX_NODES);
  const file = await readClusterFile(environment, cluster);
  const brokers = brokersOf(file.brokers, options.brokers);
  return { ports: await choosePorts(nodes, options.port, DEFAULT_PORT), brokers, cluster };
}

/** Rejects with `invalid_argument` where the directory cannot be written. */
export async function keepLayout(directory: string, layout: Layout): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, LAYOUT_FILE), `${JSON.stringify(layout, null, 2)}\n`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new EvenkeelError('invalid_argument', `--data-dir ${directory}: ${reason}`);
  }
}

/** The file's brokers, and more of them where more are asked for. */
function brokersOf(listed: readonly Broker[], asked: number | undefined): DevBroker[] {
  const brokers: DevBroker[] = listed.map(({ id, zone, maxShards, weight }) => ({
    id,
    zone,
    maxShards,
    weight,
  }));
  const wanted = inRange('--brokers', asked ?? Math.max(brokers.length, DEFAULT_BROKERS), MAX_BROKERS);
  if (wanted < brokers.length) {
    const message = `--brokers ${wanted}: the cluster file has ${brokers.length}; give another with --cluster`;
    throw new EvenkeelError('invalid_argument', message);
  }
  for (let number = 1; brokers.length < wanted; number += 1) {
    const id = `b${number}`;
    if (brokers.some((broker) => broker.id === id)) continue;
    brokers.push({ id, zone: null, maxShards: null, weight: 1 });
  }
  return brokers;
}

function inRange(option: string, value: number, max: number): number {
  if (value >= 1 && value <= max) return value;
  throw new EvenkeelError('invalid_argument', `${option} ${value}: it must be 1 to ${max}`);
}
