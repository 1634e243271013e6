import type { DataType } from "./value.ts";

/** What a sink may say of a variable besides its readings. */
export interface LayoutVariable {
  readonly uuid: string;
  readonly name: string;
  readonly address: string;
  /** After scaling: what the readings hold. */
  readonly type: DataType;
  readonly unit: string | null;
  readonly comment: string | null;
  /** EXPLORATION variables never reach sinks whose kind does not take them. */
  readonly exploration: boolean;
}

/** The versioned list of a readout's variables, in the order of its readings; stored once, named by every batch. */
export interface Layout {
  /** `machine`: its uuid in the API; absent: it is on none, or a version of before wrote this. */
  readonly source: { readonly uuid: string; readonly name: string; readonly machine?: string };
  readonly variables: readonly LayoutVariable[];
}
