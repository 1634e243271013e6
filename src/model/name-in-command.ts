/** How a command that a person is to type names a record: by its name, where a shell takes that as it is; else by its uuid. Pure. */
export const nameInCommand = ({ uuid, name }: { readonly uuid: string; readonly name: string | null }): string =>
  name !== null && /^[\w][\w.-]{0,100}$/.test(name) ? name : uuid;
