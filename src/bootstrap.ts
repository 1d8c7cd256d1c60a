import { join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '../raft/index.ts';
import type { Disk } from './disk.ts';
import { EvenkeelError } from './errors.ts';

/** How often a member that waits for the others asks again. */
const ASK_EVERY_MS = 200;
const ASK_TIMEOUT_MS = 1_000;

const memberSchema = z.strictObject({ id: z.string(), address: z.string(), directoryId: z.string() });
const groupSchema = z.strictObject({ version: z.literal(1), members: z.array(memberSchema).min(1) });

/** The founding members, each with the directory it was founded in. Written once, before the first vote. */
export type Group = z.infer<typeof groupSchema>;

/** What a member answers to another that asks whether a group may be formed. */
const answerSchema = z.strictObject({ directoryId: z.string(), group: groupSchema.nullable() });
export type BootstrapAnswer = z.infer<typeof answerSchema>;

export const BOOTSTRAP_METHOD = 'node.bootstrap';

export interface BootstrapOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly directory: string;
  readonly memberId: string;
  readonly directoryId: string;
  readonly hasState: boolean;
  readonly initialClusterState: 'new' | 'existing';
  /** From `--members`; used for the first boot only. */
  readonly members: readonly { readonly id: string; readonly address: string }[];
  ask(peer: string, method: string, params: unknown, deadlineMs: number): Promise<unknown>;
  serve(method: string, service: (params: unknown) => Promise<unknown>): void;
  /** Told while it waits, once for each new reason. */
  onWaiting(reason: string): void;
}

/**
 * The group this member belongs to: as its directory has it, or formed now. A new group is formed only after every
 * member of `--members` has answered that it has no state, or that it founded the group with this very directory
 * (it was a little faster). One that answers with a group that does not hold this directory makes this member one that
 * has lost its volume: it must not vote, and is refused. An empty majority never forms a group.
 */
export async function findGroup(options: BootstrapOptions): Promise<Group> {
  const path = join(options.directory, 'group.json');
  let group = await readGroup(options.disk, path);
  // Others may ask before, while and after this member makes up its mind.
  options.serve(BOOTSTRAP_METHOD, async () => ({ directoryId: options.directoryId, group }));
  if (group !== null) return group;
  if (options.hasState) {
    throw new EvenkeelError(
      'corrupt',
      `${path} is gone though the directory holds a log; restore the directory`,
    );
  }
  if (options.initialClusterState === 'existing') {
    throw new EvenkeelError(
      'wrong_directory',
      `${options.directory} is empty and --initial-cluster-state is existing: give the directory this member had, ` +
        `or --initial-cluster-state new to form a group with ${options.members.map(({ id }) => id).join(', ')}`,
    );
  }
  const formed = await askAll(options);
  await options.disk.replaceFile(path, Buffer.from(`${JSON.stringify(formed, null, 2)}\n`));
  group = formed;
  return formed;
}

async function readGroup(disk: Disk, path: string): Promise<Group | null> {
  const bytes = await disk.readFile(path);
  if (bytes === null) return null;
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    throw new EvenkeelError('corrupt', `${path} is not JSON; restore it from another member's directory`);
  }
  const parsed = groupSchema.safeParse(json);
  if (!parsed.success) {
    throw new EvenkeelError('corrupt', `${path} does not hold a group: ${z.prettifyError(parsed.error)}`);
  }
  return parsed.data;
}

async function askAll(options: BootstrapOptions): Promise<Group> {
  const directories = new Map([[options.memberId, options.directoryId]]);
  const told = new Set<string>();
  for (;;) {
    for (const { id } of options.members) {
      if (directories.has(id)) continue;
      const answer = await askOne(options, id);
      if (typeof answer !== 'string') {
        directories.set(id, answer.directoryId);
        if (answer.group !== null) checkFounder(options, id, answer.group);
      } else if (!told.has(`${id} ${answer}`)) {
        told.add(`${id} ${answer}`);
        options.onWaiting(`waiting for ${id}: ${answer}`);
      }
    }
    if (directories.size === options.members.length) break;
    await new Promise<void>((resolve) => options.clock.setTimeout(resolve, ASK_EVERY_MS));
  }
  const members = options.members.map(({ id, address }) => ({
    id,
    address,
    directoryId: directories.get(id) ?? '',
  }));
  return { version: 1, members: members.sort((a, b) => (a.id < b.id ? -1 : 1)) };
}

/** The peer's answer, or why there is none. Rejects where the peer knows this member by another directory. */
async function askOne(options: BootstrapOptions, peer: string): Promise<BootstrapAnswer | string> {
  try {
    return answerSchema.parse(await options.ask(peer, BOOTSTRAP_METHOD, {}, ASK_TIMEOUT_MS));
  } catch (error) {
    if (error instanceof EvenkeelError && error.data['refusal'] === 'wrong_directory') {
      throw new EvenkeelError(
        'wrong_directory',
        `${error.message}; what ${options.memberId} acknowledged may be lost with the old directory, so it must not vote`,
      );
    }
    return error instanceof Error ? error.message : String(error);
  }
}

function checkFounder(options: BootstrapOptions, peer: string, group: Group): void {
  const self = group.members.find(({ id }) => id === options.memberId);
  if (self?.directoryId === options.directoryId) return;
  throw new EvenkeelError(
    'wrong_directory',
    self === undefined
      ? `${peer} belongs to a group of ${group.members.map(({ id }) => id).join(', ')} without ${options.memberId}; check --members`
      : `${peer} knows ${options.memberId} by directory ${self.directoryId}, and ${options.directory} is a new one ` +
          `(${options.directoryId}): what ${options.memberId} acknowledged may be lost with the old one, so it must not vote; ` +
          `give it its old directory back`,
  );
}
