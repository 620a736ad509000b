"""The fields that samples have, over all suites: what the command line offers."""

from __future__ import annotations

OPTIONS = {  # flags of single suites, which say what they set
    "free": "radiomap: which values of --building are free space, such as 'value>0'.",
    "sigma": "pose: how far people place a keypoint apart, in sizes of the instance: one number for all nodes.",
    "sigmas": 'pose: the same by node, a JSON file such as {"nose": 0.026, "tail": 0.05}.',
    "default_score": "pose, instances: the score of predictions that have none.",
    "box_order": "control: the order of the boxes asked for: auto (default), x1y1x2y2 or x1x2y1y2.",
    "match": "pose: compare whole instances (oks) or only their centres (centroid); instances: masks one by one (mask) "
    "or all of a frame as one (semantic).",
}

VIDEOS = {  # flags of videos, in which the boxes of a field are detected first
    "videos": "control: generated videos, in which a detector finds the boxes of --pred first: see karat detect.",
    "truth_videos": "control: true videos, in which it finds those of --ceiling.",
}

PROMPTS = {  # flags of what pictures were asked to show, whose embeddings are made first
    "prompts": 'generation: the captions of the pictures of --pred, JSON {"id": "..."}; edits: JSON {"id": '
    '{"original": "...", "modified": "..."}}, of --truth and --pred.',
}

DETECTOR = ("model", "device")  # what is said of the network that finds them

NETWORK = {  # what is said of the network that gives pictures their features
    "network": "generation: inception (default), efficientnet-lite0, dinov2, a CLIP, a folder, or module:path; edits: "
    "a CLIP or SigLIP (default clip_vit_l_14).",
    "feature": "generation: the layer of Inception: 64, 192, 768 or 2048 (default).",
    "resize": "generation: how Inception's pictures become 299x299: tf1 (default), pytorch-fid, torchmetrics, clean.",
    "weights": "generation: the file or folder of the network's weights, in the place of those that are found.",
    "precision": "generation: float32 (default), tf32 or half.",
}

CLIP = {  # what is said of the network that reads the captions beside it
    "clip": "generation: the CLIP or SigLIP of --prompts, where --network is none (default clip_vit_l_14).",
    "prefix": "generation, edits: words that are put before every caption.",
}

SHORT = {"pred_aligned": "--aligned", "pred_std": "--std", "pred_samples": "--samples"}  # other flags of fields

EXPORTS = {  # other layouts of the results that single suites write
    "printed": "control: write what the published script prints (with --protocol reference).",
    "legacy_npz": "pose: also write the results as SLEAP-NN's metrics.npz, and its .json beside it.",
    "sigmas_out": "pose: write the sigmas that --metric node_sigma found, for --sigmas.",
}

FIELDS = {
    "pred": "Predictions: a folder of videos, frame folders, arrays, poses or boxes, or one file of these.",
    "truth": "The truth, paired with the predictions by relative path without suffix.",
    "pred_depth": "Depth of the predictions: npz, npy, 16-bit PNG or float TIFF.",
    "truth_depth": "True depth, likewise.",
    "pred_segments": "Segments of the predictions: label maps (npz, PNG), boolean stacks or COCO RLE JSON.",
    "truth_segments": "True segments, likewise.",
    "pred_std": "radiomap: predicted standard deviations, in the unit of the predictions: npy, npz, safetensors, PNG.",
    "pred_samples": "radiomap: samples of the predictions: arrays (N, H, W), one a map, or stacks of them.",
    "pred_aligned": "generation, edits: embeddings of pictures and their captions, in the place of --prompts: npz.",
    "observed": "radiomap: where the method was given samples: masks of 0 and one other value.",
    "ceiling": "control: boxes that the detector finds in the true videos, as --pred.",
    "building": "radiomap: the map of buildings, whose free space --free declares.",
}
