import type { Fault } from '../fault.ts';
import { APPLY } from './apply.ts';
import { BROKER } from './broker.ts';
import { CLIENT } from './client.ts';
import { CONTROL } from './control.ts';
import { LOG } from './log.ts';
import { PLACEMENT } from './placement.ts';
import { RAFT } from './raft.ts';
import { WIRE } from './wire.ts';
import { MISSED_ONCE } from './missed-once.ts';

/** By list. */
export const FAULTS: Readonly<Record<string, readonly Fault[]>> = {
  'missed-once': MISSED_ONCE,
  broker: BROKER,
  client: CLIENT,
  control: CONTROL,
  apply: APPLY,
  log: LOG,
  wire: WIRE,
  raft: RAFT,
  placement: PLACEMENT,
};
