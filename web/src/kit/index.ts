/**
 * The Mantine components in use; their styles are imported in styles/mantine.css. Add a component to both files,
 * and check the bundle size that `npm run build` prints. Plain HTML is preferred where it is enough.
 *
 * Never pass responsive style props (`p={{ base: 1, sm: 2 }}`): Mantine injects a style element for them, which the
 * content security policy refuses. Layout belongs in a CSS module.
 */
import "@/styles/mantine.css";

export {
  Autocomplete,
  Button,
  Checkbox,
  NativeSelect,
  PasswordInput,
  Radio,
  Textarea,
  TextInput,
} from "@mantine/core";
