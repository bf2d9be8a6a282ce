# Sourced: where the lab keeps things, and who runs it. Both folders can be moved by setting the variables.
lab_user=wqlab
if [ "$(id -u)" = 0 ]; then
    : "${WQLAB_CACHE:=/var/cache/wqlab}" "${WQLAB_STATE:=/var/lib/wqlab/lab}"
else
    : "${WQLAB_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/wqlab}" "${WQLAB_STATE:=${XDG_STATE_HOME:-$HOME/.local/state}/wqlab}"
fi
export WQLAB_CACHE WQLAB_STATE
